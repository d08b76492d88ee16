//! Kept inputs as text: one a line, so that a change of them is a change of lines.
//!
//! Printable ASCII stands as it is, but for the backslash; a backslash, a line's end and a tab are
//! `\\`, `\n`, `\t`, and any other byte is `\xNN`.

/// The inputs of a file.
///
/// # Panics
/// If the file was not made by `fuzz/run.py`.
pub fn read(text: &str) -> Vec<Vec<u8>> {
    text.lines().map(unescaped).collect()
}

fn unescaped(line: &str) -> Vec<u8> {
    let mut bytes = line.bytes();
    let mut found = Vec::with_capacity(line.len());
    while let Some(byte) = bytes.next() {
        let plain = match (byte, if byte == b'\\' { bytes.next() } else { None }) {
            (b'\\', Some(b'\\')) => b'\\',
            (b'\\', Some(b'n')) => b'\n',
            (b'\\', Some(b't')) => b'\t',
            (b'\\', Some(b'x')) => {
                let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
                let (high, low) = (digit(), digit());
                high.zip(low).map(|(high, low)| (high * 16 + low) as u8).expect("two digits behind \\x")
            }
            (b'\\', other) => panic!("an escape that is none: {other:?}"),
            (plain, _) => plain,
        };
        found.push(plain);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_escape_is_read() {
        let found = read("a\\\\b\\n\\t\\xff\\x00\n\nlast");
        assert_eq!(found, [b"a\\b\n\t\xff\0".to_vec(), Vec::new(), b"last".to_vec()]);
    }
}
