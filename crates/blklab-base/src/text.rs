//! Words for messages: the nearest valid name, and names that are safe for a terminal.

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
pub fn hint(word: &str, candidates: &[&str]) -> String {
    match nearest(word, candidates) {
        Some(name) => format!("; did you mean '{name}'?"),
        None if candidates.is_empty() => "; it has none".to_owned(),
        None => format!("; there are: {}", candidates.join(", ")),
    }
}

/// `text` with control characters and marks that change the writing direction as `\u{1b}`.
pub fn shown(text: &str) -> String {
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut found = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || turns(c) {
            found.extend(c.escape_unicode());
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
        assert_eq!(hint("fifo_bach", &["fifo_batch"]), "; did you mean 'fifo_batch'?");
        assert_eq!(hint("zzz", &["a1", "b2"]), "; there are: a1, b2");
    }

    #[test]
    fn a_name_moves_no_cursor_and_turns_no_line() {
        assert_eq!(shown("a\x1b[2J\u{9b}\n\u{202e}\x7f"), r"a\u{1b}[2J\u{9b}\u{a}\u{202e}\u{7f}");
        assert_eq!(shown("Größe 5.25\" 'x'"), "Größe 5.25\" 'x'");
    }
}
