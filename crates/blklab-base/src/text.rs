//! Words for messages: the nearest valid name, and names that are safe for a terminal.

use std::fmt;

/// The candidate closest to `word`, if it is close enough.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    let enough = |c: &str| 1 + c.len().max(word.len()) / 4;
    candidates
        .iter()
        // The distance is at least the difference of lengths: a word of kilobytes is not compared
        // with each.
        .filter(|c| c.chars().count().abs_diff(word.chars().count()) <= enough(c))
        .map(|c| (strsim::damerau_levenshtein(&word, &c.to_lowercase()), *c))
        .min()
        .filter(|(distance, c)| *distance <= enough(c))
        .map(|(_, c)| c)
}

/// The addition to "there is no X": the nearest name, or all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The nearest name.
    pub nearest: Option<String>,
    /// If no name is near: all of them.
    all: Vec<String>,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nearest {
            Some(_) => f.write_str(&did_you_mean(self.nearest.as_deref())),
            None if self.all.is_empty() => f.write_str("; it has none"),
            None => write!(f, "; there are: {}", self.all.join(", ")),
        }
    }
}

/// The names that may have been meant by `word`.
pub fn hint(word: &str, candidates: &[&str]) -> Hint {
    let nearest = nearest(word, candidates).map(str::to_owned);
    Hint { nearest, all: candidates.iter().map(|name| (*name).to_owned()).collect() }
}

/// The addition to a message, if there is a nearest name.
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default()
}

/// `text` with control characters and marks that change the writing direction as `\u{1b}`.
pub fn shown(text: &str) -> String {
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut found = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || turns(c) {
            found.extend(c.escape_default());
        } else {
            found.push(c);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_word_that_was_meant() {
        assert_eq!(nearest("iodepht", &["iodepth", "ioengine"]), Some("iodepth"));
        assert_eq!(nearest("zzz", &["iodepth", "ioengine"]), None);
        assert_eq!(hint("fifo_bach", &["fifo_batch"]).to_string(), "; did you mean 'fifo_batch'?");
        assert_eq!(hint("zzz", &["a1", "b2"]).to_string(), "; there are: a1, b2");
    }

    #[test]
    fn a_name_moves_no_cursor_and_turns_no_line() {
        assert_eq!(shown("a\x1b[2J\u{9b}\n\u{202e}\x7f"), r"a\u{1b}[2J\u{9b}\n\u{202e}\u{7f}");
        assert_eq!(shown("Größe 5.25\" 'x'"), "Größe 5.25\" 'x'");
    }
}
