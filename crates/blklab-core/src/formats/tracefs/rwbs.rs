//! The operation of an event, from the letters of its field `rwbs`.

use crate::request::Op;

/// The operation of `RWBS` letters, which end at a zero; None if it transfers no data of a disk.
///
/// `F` before another operation requires a flush first and is not an operation itself.
pub fn op(letters: &[u8]) -> Option<Op> {
    let first = match letters {
        [b'F', second @ (b'R' | b'W' | b'D' | b'E' | b'Z' | b'N'), ..] => *second,
        [first, ..] => *first,
        [] => return None,
    };
    match (first, letters.get(1)) {
        (b'R', _) => Some(Op::Read),
        (b'W', _) | (b'Z', Some(b'A')) => Some(Op::Write),
        (b'D' | b'E', _) => Some(Op::Discard),
        (b'F', _) => Some(Op::Flush),
        _ => None,
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
            assert_eq!(op(letters), expected, "{letters:?}");
        }
    }
}
