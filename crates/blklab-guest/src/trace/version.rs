//! Records of version 8 as those of version 7, which blkparse and the rest of this crate read.
//!
//! Linux 7.3 writes both. Its version 7 lacks every write with FUA, such as the commits of journals:
//! `__blk_add_trace` takes the bit of FUA for one that this version cannot hold. Version 8 has them.

/// Where a record of each version has its length of data behind it, and its own length.
const SEVEN: (usize, usize) = (46, 48);
const EIGHT: (usize, usize) = (50, 64);

/// A stream of records of either version, in parts of any length.
#[derive(Debug, Default)]
pub struct AsSeven {
    /// The start of an incomplete record.
    rest: Vec<u8>,
    out: Vec<u8>,
}

impl AsSeven {
    /// The complete records so far, as version 7. What is no record is handed on as it is.
    pub fn take(&mut self, bytes: &[u8]) -> &[u8] {
        self.out.clear();
        self.rest.extend_from_slice(bytes);
        let mut left = self.rest.as_slice();
        while let Some(&[version, ..]) = left.first_chunk::<4>() {
            let (at, length) = match version {
                8 => EIGHT,
                7 => SEVEN,
                _ => {
                    self.out.extend_from_slice(left);
                    left = &[];
                    break;
                }
            };
            let Some(behind) = left.get(at..at + 2) else { break };
            let behind = u16::from_le_bytes([behind[0], behind[1]]);
            let Some(record) = left.get(..length + usize::from(behind)) else { break };
            match version {
                8 => narrowed(record, &mut self.out),
                _ => self.out.extend_from_slice(record),
            }
            left = &left[record.len()..];
        }
        self.rest = left.to_vec();
        &self.out
    }
}

/// `struct blk_io_trace2` as `struct blk_io_trace`. Actions above 32 bits are those of zones.
fn narrowed(record: &[u8], out: &mut Vec<u8>) {
    out.push(7);
    // Magic, sequence, time, sector, bytes.
    out.extend_from_slice(&record[1..28]);
    // The action's lower half.
    out.extend_from_slice(&record[32..36]);
    // The process.
    out.extend_from_slice(&record[28..32]);
    // Device, CPU, error, length behind.
    out.extend_from_slice(&record[40..52]);
    out.extend_from_slice(&record[EIGHT.1..]);
}

const _: () = assert!(cfg!(target_endian = "little"), "the version is the first byte");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::record::testing::written;

    /// The same record as the kernel writes it in version 8.
    fn eight(seven: &[u8]) -> Vec<u8> {
        let mut wide = vec![8];
        wide.extend(&seven[1..28]);
        wide.extend(&seven[32..36]);
        wide.extend(&seven[28..32]);
        wide.extend([0; 4]);
        wide.extend(&seven[36..48]);
        wide.extend([0; 12]);
        wide.extend(&seven[48..]);
        wide
    }

    #[test]
    fn both_versions_give_one_stream_whatever_the_parts() {
        let mut long = written(3, 'C', 'W', 8, 8);
        long.extend([1, 2, 3]);
        long[46] = 3;
        let records = [written(1, 'Q', 'R', 0, 8), long, written(4, 'm', 'R', 0, 0)];
        let seven = records.concat();
        let wide: Vec<u8> = records.iter().flat_map(|record| eight(record)).collect();
        for stream in [&seven, &wide] {
            for part in [1, 7, 48, 64, 100, stream.len()] {
                let mut taken = AsSeven::default();
                let found: Vec<u8> =
                    stream.chunks(part).flat_map(|bytes| taken.take(bytes).to_vec()).collect();
                assert_eq!(found, seven, "parts of {part}");
            }
        }
    }

    #[test]
    fn bytes_of_another_form_are_handed_on() {
        assert_eq!(AsSeven::default().take(b"nothing of that sort"), b"nothing of that sort");
    }
}
