//! Words for error messages: the nearest right name.

/// The candidate closest to `word`, if it is close enough to have been meant.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .iter()
        .map(|c| (strsim::damerau_levenshtein(&word, &c.to_lowercase()), *c))
        .min()
        .filter(|(distance, c)| *distance <= 1 + c.len().max(word.len()) / 4)
        .map(|(_, c)| c)
}

/// What to append to "there is no X": the nearest name, or all of them.
pub fn hint(word: &str, candidates: &[&str]) -> String {
    match nearest(word, candidates) {
        Some(name) => format!("; did you mean '{name}'?"),
        None if candidates.is_empty() => "; it has none".to_owned(),
        None => format!("; there are: {}", candidates.join(", ")),
    }
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
}
