//! The error of a refused input, as a value: for every file and text that users write.

use std::error::Error;
use std::fmt;

/// The error of a refused input. Its text is one line: the place, then the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputError {
    /// The reason, in one line, without file and line.
    pub reason: String,
    /// The file, as given.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<usize>,
    /// The column in it, from 1, in bytes.
    pub column: Option<usize>,
    /// The option, key or tunable, as written.
    pub option: Option<String>,
    /// The text found.
    pub found: Option<String>,
    /// The text expected.
    pub expected: Option<String>,
    /// The valid name nearest to the one found.
    pub nearest: Option<String>,
}

impl InputError {
    /// Without a place.
    pub fn new(reason: impl Into<String>) -> InputError {
        InputError { reason: reason.into(), ..InputError::default() }
    }

    /// About this option, key or tunable.
    #[must_use]
    pub fn option(self, option: impl Into<String>) -> InputError {
        InputError { option: Some(option.into()), ..self }
    }

    /// The text found.
    #[must_use]
    pub fn found(self, found: impl Into<String>) -> InputError {
        InputError { found: Some(found.into()), ..self }
    }

    /// The text expected.
    #[must_use]
    pub fn expected(self, expected: impl Into<String>) -> InputError {
        InputError { expected: Some(expected.into()), ..self }
    }

    /// The valid name nearest to the text found, if one is near.
    #[must_use]
    pub fn nearest(self, nearest: Option<impl Into<String>>) -> InputError {
        InputError { nearest: nearest.map(Into::into), ..self }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(file)?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.reason)
    }
}

impl Error for InputError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_line_is_the_place_as_far_as_it_is_known_and_the_reason() {
        let bare = InputError::new("rpm: found -1").option("rpm").found("-1");
        assert_eq!(bare.to_string(), "rpm: found -1");
        let of_file = InputError { file: Some("a.toml".into()), ..bare };
        assert_eq!(of_file.to_string(), "a.toml: rpm: found -1");
        let of_line = InputError { line: Some(3), column: Some(7), ..of_file };
        assert_eq!(of_line.to_string(), "a.toml:3: rpm: found -1");
    }
}
