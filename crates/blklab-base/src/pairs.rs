//! Lists of `name=value` with commas between, as users write them behind a name: the settings of a
//! scheduler, the keys of a disk, a host's values, options of a job, parameters of a recording.

use crate::input_error::InputError;
use crate::text::shown;

/// Why a list is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairError<'a> {
    /// A piece has no name, no `=` or no value.
    NotAPair(&'a str),
    /// A name is given twice.
    Twice(&'a str),
}

impl PairError<'_> {
    /// The error for the user: `owner` is what the list is of, `expected` the form of a pair.
    pub fn of(self, owner: &str, expected: &str) -> InputError {
        match self {
            PairError::NotAPair(found) => {
                let found = shown(found);
                InputError::new(format!("{owner}: expected {expected} behind ':', found '{found}'"))
                    .found(found)
                    .expected(expected)
            }
            PairError::Twice(name) => {
                let name = shown(name);
                InputError::new(format!("{owner}: '{name}' is given twice")).option(name)
            }
        }
    }
}

/// The pairs of `NAME=VALUE[,NAME=VALUE]...`, without blanks around names and values.
///
/// # Errors
/// The first piece that is no pair.
pub fn pairs(text: &str) -> Result<Vec<(&str, &str)>, PairError<'_>> {
    collected(text.split(','))
}

/// The same where values may hold commas: a comma separates pairs if a name and `=` follow it, so that
/// `bs=4k,8k,rw=read` has two.
///
/// # Errors
/// The first piece that is no pair.
pub fn pairs_with_commas(text: &str) -> Result<Vec<(&str, &str)>, PairError<'_>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for (at, _) in text.match_indices(',') {
        if begins_a_pair(&text[at + 1..]) {
            pieces.push(&text[from..at]);
            from = at + 1;
        }
    }
    pieces.push(&text[from..]);
    collected(pieces.into_iter())
}

/// Whether a word and `=` are next.
fn begins_a_pair(text: &str) -> bool {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    end > 0 && text[end..].trim_start().starts_with('=')
}

fn collected<'a>(pieces: impl Iterator<Item = &'a str>) -> Result<Vec<(&'a str, &'a str)>, PairError<'a>> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for piece in pieces {
        let pair = piece.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        let Some((name, value)) = pair.filter(|(name, value)| !name.is_empty() && !value.is_empty()) else {
            return Err(PairError::NotAPair(piece));
        };
        if found.iter().any(|(other, _)| *other == name) {
            return Err(PairError::Twice(name));
        }
        found.push((name, value));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_values_come_without_blanks_in_their_order() {
        assert_eq!(pairs(" a = 1,b=x y "), Ok(vec![("a", "1"), ("b", "x y")]));
        assert_eq!(pairs("a=b=c"), Ok(vec![("a", "b=c")]));
    }

    #[test]
    fn a_comma_stays_in_a_value_unless_a_name_follows() {
        let expected = vec![("bs", "4k,8k"), ("rw", "read")];
        assert_eq!(pairs_with_commas("bs=4k,8k, rw =read"), Ok(expected));
        assert_eq!(pairs_with_commas("bs=,4k"), Ok(vec![("bs", ",4k")]));
        assert_eq!(pairs_with_commas("a=1,"), Ok(vec![("a", "1,")]));
    }

    #[test]
    fn the_first_piece_that_is_no_pair_is_named() {
        for (text, found) in [("", ""), ("a=1,", ""), ("a", "a"), ("=1", "=1"), ("a=1,b= ", "b= ")] {
            assert_eq!(pairs(text), Err(PairError::NotAPair(found)), "{text}");
        }
        assert_eq!(pairs("a=1,b=2, a=3"), Err(PairError::Twice("a")));
        let told = PairError::NotAPair("x\n").of("disk 'd:x'", "key=value").to_string();
        assert_eq!(told, "disk 'd:x': expected key=value behind ':', found 'x\\n'");
    }

    proptest! {
        #[test]
        fn written_pairs_are_read_again(
            given in proptest::collection::btree_map("[a-z_]{1,6}", "[a-z0-9]{1,4}(,[0-9]{1,3})?", 1..6),
        ) {
            let text: Vec<_> = given.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let expected: Vec<_> = given.iter().map(|(name, value)| (&**name, &**value)).collect();
            let text = text.join(",");
            prop_assert_eq!(pairs_with_commas(&text), Ok(expected));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            for found in [pairs(&text), pairs_with_commas(&text)].into_iter().flatten() {
                prop_assert!(found.iter().all(|(name, value)| !name.is_empty() && !value.is_empty()));
            }
        }
    }
}
