//! Parts of lines: fields, numbers, times.

/// The words of a line, which blanks separate.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

/// Without blanks and quotes around it.
pub fn trimmed(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    match field {
        [b'"', inner @ .., b'"'] => inner,
        _ => field,
    }
}

/// A whole number; None if it is something else, or does not fit.
#[inline]
pub fn number(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    // Nineteen digits fit for certain.
    if field.len() <= 19 {
        let mut value = 0;
        for byte in field {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    field.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// A number of hexadecimal digits.
pub fn hex(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

/// A decimal number of units of `unit_ns`, in ns. Digits below 1 ns are dropped.
///
/// Whole numbers all the way: ns since 1601 do not fit the 53 bits of a float.
#[inline]
pub fn time(field: &[u8], unit_ns: u64) -> Option<u64> {
    let Some(point) = field.iter().position(|byte| *byte == b'.') else {
        return number(field)?.checked_mul(unit_ns);
    };
    let (whole, fraction) = (&field[..point], &field[point + 1..]);
    let whole = if whole.is_empty() && !fraction.is_empty() { 0 } else { number(whole)? };
    // Beyond these the digits are below 1 ns for any unit up to a day.
    let (mut part, mut scale) = (0_u128, 1_u128);
    for (place, byte) in fraction.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        if place < 18 {
            part = part * 10 + u128::from(digit);
            scale *= 10;
        }
    }
    let part = part * u128::from(unit_ns) / scale;
    whole.checked_mul(unit_ns)?.checked_add(u64::try_from(part).ok()?)
}

/// How many digits a decimal number has behind its point.
pub fn decimals(field: &[u8]) -> usize {
    field.iter().position(|byte| *byte == b'.').map_or(0, |point| field.len() - point - 1)
}

/// A field for a message: short, and safe for a terminal.
pub fn quoted(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(&field[..field.len().min(80)]).into_owned();
    blklab_base::text::shown(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_1601_is_exact_to_the_nanosecond() {
        assert_eq!(time(b"128166372003061629", 100), Some(12_816_637_200_306_162_900));
        assert_eq!(time(b"1455062400.123456789", 1_000_000_000), Some(1_455_062_400_123_456_789));
        assert_eq!(time(b"0.4", 1000), Some(400));
        assert_eq!(time(b".5", 1_000_000_000), Some(500_000_000));
        assert_eq!(time(b"7.", 1000), Some(7000));
        for wrong in [&b"."[..], b"", b"-1", b"1e9", b"1.2.3", b"99999999999999999999"] {
            assert_eq!(time(wrong, 1000), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn numbers_end_at_64_bits() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!((number(b""), number(b"+1"), number(b"12a")), (None, None, None));
        assert_eq!((hex(b"2a"), hex(b"0x2A"), hex(b"x")), (Some(42), Some(42), None));
    }
}
