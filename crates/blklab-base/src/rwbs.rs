//! The letters `RWBS` of the kernel's block events: operation and flags.
//!
//! `blk_fill_rwbs` of kernel/trace/blktrace.c, Linux 7.3: `F` for a preflush, the operation, then
//! `F` for FUA, `A` for read-ahead, `S`, `M` and `U` (atomic).

use crate::recorded::{Flags, Op};

/// Operation and flags of the letters, which may end at a zero; None if they name no operation.
///
/// A write with a preflush and no data is a flush, which only its length tells.
pub fn parse(letters: &[u8]) -> Option<(Op, Flags)> {
    let end = letters.iter().position(|letter| *letter == 0).unwrap_or(letters.len());
    let letters = &letters[..end];
    let (preflush, rest) = match letters {
        // A flush of its own is `F` or, with a preflush, `FF`.
        [b'F', rest @ ..] if rest.first().is_some_and(|next| b"RWDEZNF".contains(next)) => (true, rest),
        _ => (false, letters),
    };
    let (op, secure, behind) = match rest {
        [b'R', behind @ ..] => (Op::Read, false, behind),
        [b'W', b'Z', behind @ ..] => (Op::WriteZeroes, false, behind),
        [b'W', behind @ ..] => (Op::Write, false, behind),
        [b'D', b'E', behind @ ..] | [b'E', behind @ ..] => (Op::Discard, true, behind),
        [b'D', behind @ ..] => (Op::Discard, false, behind),
        [b'F', behind @ ..] => (Op::Flush, false, behind),
        [b'Z', b'A', behind @ ..] => (Op::Write, false, behind),
        [b'Z', ..] | [b'N', ..] => (Op::Other, false, &rest[rest.len()..]),
        _ => return None,
    };
    let mut flags = Flags::default().with_if(preflush, Flags::PREFLUSH).with_if(secure, Flags::SECURE);
    for letter in behind {
        flags = flags.with(match letter {
            b'F' => Flags::FUA,
            b'A' => Flags::READ_AHEAD,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            b'U' => Flags::ATOMIC,
            // A later kernel's letter.
            _ => Flags::default(),
        });
    }
    Some((op, flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journals_commit_record_has_all_its_flags() {
        let (op, flags) = parse(b"FWFSM\0\0").expect("letters");
        let all = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC).with(Flags::META);
        assert_eq!((op, flags), (Op::Write, all));
    }

    #[test]
    fn each_operation_is_known() {
        let none = Flags::default();
        let rows: [(&[u8], _); 14] = [
            (b"R", (Op::Read, none)),
            (b"RA", (Op::Read, Flags::READ_AHEAD)),
            (b"W\0S", (Op::Write, none)),
            (b"WU", (Op::Write, Flags::ATOMIC)),
            (b"WZS", (Op::WriteZeroes, Flags::SYNC)),
            (b"D", (Op::Discard, none)),
            (b"DE", (Op::Discard, Flags::SECURE)),
            (b"F", (Op::Flush, none)),
            (b"FF", (Op::Flush, Flags::PREFLUSH)),
            (b"FWS", (Op::Write, Flags::PREFLUSH.with(Flags::SYNC))),
            (b"FN", (Op::Other, Flags::PREFLUSH)),
            (b"ZAS", (Op::Write, Flags::SYNC)),
            (b"ZRA", (Op::Other, none)),
            (b"N", (Op::Other, none)),
        ];
        for (letters, expected) in rows {
            assert_eq!(parse(letters), Some(expected), "{}", letters.escape_ascii());
        }
        assert_eq!((parse(b""), parse(b"\0R"), parse(b"x")), (None, None, None));
    }
}
