//! The operation of an event, from the letters of its field `rwbs`.

use blklab_base::{recorded, rwbs};

use crate::request::Op;

/// The operation of `RWBS` letters, which end at a zero, and whether a process waits for it; None if it
/// transfers no data of a disk.
///
/// `F` before another operation requires a flush first and is not an operation itself.
pub fn op_and_sync(letters: &[u8]) -> Option<(Op, bool)> {
    let (op, flags) = rwbs::parse(letters)?;
    Some((of(op)?, flags.has(recorded::Flags::SYNC)))
}

fn of(op: recorded::Op) -> Option<Op> {
    match op {
        recorded::Op::Read => Some(Op::Read),
        recorded::Op::Write | recorded::Op::WriteZeroes => Some(Op::Write),
        recorded::Op::Discard => Some(Op::Discard),
        recorded::Op::Flush => Some(Op::Flush),
        recorded::Op::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_before_a_write_is_a_write() {
        let all: [(&[u8], _); 10] = [
            (b"R\0", Some(Op::Read)),
            (b"RAM", Some(Op::Read)),
            (b"WS", Some(Op::Write)),
            (b"FWFS\0", Some(Op::Write)),
            (b"FF", Some(Op::Flush)),
            (b"F\0\0", Some(Op::Flush)),
            (b"DS", Some(Op::Discard)),
            (b"ZA", Some(Op::Write)),
            (b"N", None),
            (b"", None),
        ];
        for (letters, expected) in all {
            assert_eq!(op_and_sync(letters).map(|(op, _)| op), expected, "{letters:?}");
        }
        assert_eq!(op_and_sync(b"WS"), Some((Op::Write, true)));
        assert_eq!(op_and_sync(b"WM"), Some((Op::Write, false)));
    }
}
