//! Lines of a text, numbered from 1.

use std::io::BufRead;

use blklab_base::input_error::InputError;

use crate::input::Input;

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 1 << 16;

/// The lines of an input.
pub struct Lines {
    input: Input,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    /// From the start.
    pub fn new(input: Input) -> Lines {
        Lines { input, line: Vec::new(), number: 0 }
    }

    /// The number of the last line.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end; None behind the last.
    ///
    /// # Errors
    /// The line is too long, or the input cannot be read.
    #[inline]
    pub fn next(&mut self) -> Result<Option<&[u8]>, InputError> {
        self.line.clear();
        self.number += 1;
        loop {
            let filled = self.input.fill_buf().map_err(|error| unreadable(&error, self.number))?;
            if filled.is_empty() {
                if self.line.is_empty() {
                    self.number -= 1;
                    return Ok(None);
                }
                break;
            }
            let end = memchr::memchr(b'\n', filled);
            let length = end.unwrap_or(filled.len());
            if self.line.len() + length > LINE_BYTES_MAX {
                return Err(self.refused(format!("a line of more than {LINE_BYTES_MAX} bytes")));
            }
            self.line.extend_from_slice(&filled[..length]);
            self.input.consume(length + usize::from(end.is_some()));
            if end.is_some() {
                break;
            }
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some(&self.line))
    }

    /// The last line again.
    pub fn last(&self) -> &[u8] {
        &self.line
    }

    /// The error of the last line.
    pub fn refused(&self, reason: impl Into<String>) -> InputError {
        InputError { line: Some(self.number as usize), ..InputError::new(reason) }
    }
}

/// The error of an input that breaks off.
pub fn unreadable(error: &std::io::Error, line: u64) -> InputError {
    InputError { line: Some(line as usize), ..InputError::new(format!("cannot be read further: {error}")) }
}
