//! Numbers in fio's notation: `4k`, `0x10`, `1MiB`, `30s`, `20%`, `(1024*4)`.
//!
//! fio 3.33 stops at the first unknown character and uses the text before it (`bs=4q` is 4 bytes,
//! `runtime=1h30m` a microsecond). Here that is an error.

use crate::units::{Bytes, Nanos};
use crate::workload::spec::{Extent, PerDirection};

/// `kb_base`: the meaning of the prefixes k, m, g, t, p and ki, mi, gi, ti, pi.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KbBase {
    /// fio's default: `k` is 1024 and, against the standard, `kib` is 1000.
    #[default]
    Compatible,
    /// `kb_base=1000`: `k` is 1000 and `kib` 1024.
    Standard,
}

/// The unit of a time without a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Microseconds.
    Micros,
    /// Seconds.
    Seconds,
}

/// The longest time: 100 years of 365 days. Sums of a few of them stay within 64 bits of
/// nanoseconds.
pub const TIME_MAX: Nanos = Nanos::from_secs(100 * 365 * 86_400);

/// The maximum depth of nested parentheses: a bound on the evaluator's recursion.
const NESTING_MAX: u32 = 32;

/// A whole number with an optional size suffix.
pub fn integer(text: &str, base: KbBase) -> Option<i128> {
    number(text, &|suffix| size_factor(suffix, base))
}

/// A number of bytes, not negative.
pub fn bytes(text: &str, base: KbBase) -> Option<u64> {
    u64::try_from(integer(text, base)?).ok()
}

/// Bytes, or percent (0 to 100).
pub fn extent(text: &str, base: KbBase) -> Option<Extent> {
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent = u32::try_from(integer(percent, base)?).ok()?;
            (percent <= 100).then_some(Extent::Percent(percent))
        }
        None => bytes(text, base).map(|b| Extent::Bytes(Bytes(b))),
    }
}

/// A time up to [`TIME_MAX`]. In parentheses the unit is always microseconds, as in fio.
pub fn time(text: &str, unit: TimeUnit) -> Option<Nanos> {
    let unit = if text.starts_with('(') { TimeUnit::Micros } else { unit };
    let micros = number(text, &|suffix| time_factor(suffix, unit))?;
    u64::try_from(micros.checked_mul(1000)?).ok().map(Nanos).filter(|time| *time <= TIME_MAX)
}

/// Two values with `-` or `:` between them, sorted; one value counts for both.
pub fn range<T: PartialOrd + Copy>(text: &str, one: impl Fn(&str) -> Option<T>) -> Option<(T, T)> {
    let Some((low, high)) = text.split_once(['-', ':']) else {
        return one(text).map(|value| (value, value));
    };
    let (low, high) = (one(low.trim())?, one(high.trim())?);
    Some(if low <= high { (low, high) } else { (high, low) })
}

/// Up to three values, for reads, writes and trims. A missing one is `None`; the last one also
/// counts for the directions after it, unless a comma follows it.
pub fn per_direction<T: Clone>(
    text: &str,
    one: impl Fn(&str) -> Option<T>,
) -> Option<PerDirection<Option<T>>> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 || parts.iter().all(|part| part.is_empty()) {
        return None;
    }
    let mut values = Vec::with_capacity(3);
    for part in parts {
        values.push(if part.is_empty() { None } else { Some(one(part)?) });
    }
    let last = values.last().cloned().flatten();
    values.resize(3, last);
    let [read, write, trim] = values.try_into().ok()?;
    Some(PerDirection { read, write, trim })
}

/// Evaluates an arithmetic expression without its outer parentheses (the rest of `8*$ncpus` after
/// the keyword has been replaced).
pub fn expression(text: &str, base: KbBase) -> Option<i128> {
    parenthesised(&format!("({text})"), &|suffix| size_factor(suffix, base))
}

/// The factor of a size suffix.
fn size_factor(suffix: &str, base: KbBase) -> Option<i128> {
    let suffix = suffix.to_ascii_lowercase();
    let (plain, with_i): (i128, i128) = match base {
        KbBase::Compatible => (1024, 1000),
        KbBase::Standard => (1000, 1024),
    };
    let power = |letter: &str| "kmgtp".find(letter).map(|i| i as u32 + 1);
    match suffix.as_str() {
        "" | "b" => Some(1),
        // fio 3.33 reads "ki" as "k": only the full "kib" is the other kind.
        s if s.len() == 3 && s.ends_with("ib") => Some(with_i.pow(power(&s[..1])?)),
        s if s.len() == 1 || s.len() == 2 && (s.ends_with('b') || s.ends_with('i')) => {
            Some(plain.pow(power(s.get(..1)?)?))
        }
        _ => None,
    }
}

/// Microseconds in a unit of time.
fn time_factor(suffix: &str, unit: TimeUnit) -> Option<i128> {
    Some(match suffix.to_ascii_lowercase().as_str() {
        "" if unit == TimeUnit::Micros => 1,
        "" => 1_000_000,
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "s" | "sec" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    })
}

/// A number with its suffix, or an expression in parentheses.
fn number(text: &str, factor: &dyn Fn(&str) -> Option<i128>) -> Option<i128> {
    let text = text.trim();
    if text.starts_with('(') {
        return parenthesised(text, factor);
    }
    let (negative, rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let (value, suffix) = digits(rest)?;
    let value = value.checked_mul(factor(suffix)?)?;
    Some(if negative { -value } else { value })
}

/// Leading digits, decimal or hexadecimal, and what follows them.
fn digits(text: &str) -> Option<(i128, &str)> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (radix, text) = hex.map_or((10, text), |hex| (16, hex));
    let end = text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len());
    // A number of 64 bits has at most twenty digits.
    if end == 0 || end > 20 {
        return None;
    }
    Some((i128::from_str_radix(&text[..end], radix).ok()?, &text[end..]))
}

/// `( ... )` and no text after it.
fn parenthesised(text: &str, factor: &dyn Fn(&str) -> Option<i128>) -> Option<i128> {
    let mut parser = Expression { rest: text, factor, depth: 0 };
    let value = parser.atom()?;
    parser.rest.trim().is_empty().then_some(value)
}

/// Recursive descent over `+ - * / % ^` and parentheses, in whole numbers.
struct Expression<'a> {
    rest: &'a str,
    factor: &'a dyn Fn(&str) -> Option<i128>,
    depth: u32,
}

impl Expression<'_> {
    fn eat(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<i128> {
        let mut value = self.product()?;
        loop {
            if self.eat('+') {
                value = value.checked_add(self.product()?)?;
            } else if self.eat('-') {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i128> {
        let mut value = self.power()?;
        loop {
            if self.eat('*') {
                value = value.checked_mul(self.power()?)?;
            } else if self.eat('/') {
                value = value.checked_div(self.power()?)?;
            } else if self.eat('%') {
                value = value.checked_rem(self.power()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn power(&mut self) -> Option<i128> {
        let base = self.atom()?;
        if !self.eat('^') {
            return Some(base);
        }
        self.deeper(|parser| base.checked_pow(u32::try_from(parser.power()?).ok()?))
    }

    fn atom(&mut self) -> Option<i128> {
        if self.eat('-') {
            return self.deeper(|parser| parser.atom()?.checked_neg());
        }
        if self.eat('(') {
            let value = self.deeper(Expression::sum)?;
            return self.eat(')').then_some(value);
        }
        let (value, rest) = digits(self.rest)?;
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let factor = (self.factor)(&rest[..end])?;
        self.rest = &rest[end..];
        value.checked_mul(factor)
    }

    fn deeper(&mut self, inner: impl FnOnce(&mut Self) -> Option<i128>) -> Option<i128> {
        self.depth += 1;
        let value = if self.depth > NESTING_MAX { None } else { inner(self) };
        self.depth -= 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIO: KbBase = KbBase::Compatible;

    #[test]
    fn a_size_suffix_is_a_power_of_1024_and_its_ib_form_of_1000_as_in_fio() {
        for (text, expected) in [
            ("4096", 4096),
            ("4096b", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4kB", 4096),
            ("4ki", 4096),
            ("4kib", 4000),
            ("0x1000", 4096),
            ("0x1k", 1024),
            ("+2m", 2 << 20),
            ("1g", 1 << 30),
            ("1t", 1 << 40),
            ("1PiB", 1_000_000_000_000_000),
        ] {
            assert_eq!(bytes(text, FIO), Some(expected), "{text}");
        }
        assert_eq!(bytes("4k", KbBase::Standard), Some(4000));
        assert_eq!(bytes("4kib", KbBase::Standard), Some(4096));
    }

    #[test]
    fn values_that_fio_would_truncate_are_refused() {
        for text in ["", "k", "4q", "4kk", "1.5k", "4k k", "0x", "-1", "99999999999999999999999", "4é"] {
            assert_eq!(bytes(text, FIO), None, "{text}");
        }
        for text in ["1h30m", "10x", "-5", "ms", "36501d"] {
            assert_eq!(time(text, TimeUnit::Seconds), None, "{text}");
        }
    }

    #[test]
    fn a_time_without_a_unit_is_in_the_options_own() {
        assert_eq!(time("10", TimeUnit::Seconds), Some(Nanos::from_secs(10)));
        assert_eq!(time("10", TimeUnit::Micros), Some(Nanos::from_micros(10)));
        assert_eq!(time("(10)", TimeUnit::Seconds), Some(Nanos::from_micros(10)));
        assert_eq!(time("250ms", TimeUnit::Seconds), Some(Nanos::from_millis(250)));
        assert_eq!(time("2D", TimeUnit::Micros), Some(Nanos::from_secs(172_800)));
    }

    #[test]
    fn expressions_follow_the_usual_precedence() {
        for (text, expected) in [
            ("(1024*4)", 4096),
            ("(4 * (1k + 24))", 4192),
            ("(2^3^2)", 512),
            ("(10-3-2)", 5),
            ("(7/2*2)", 6),
            ("(17%5)", 2),
            ("(10--2)", 12),
        ] {
            assert_eq!(bytes(text, FIO), Some(expected), "{text}");
        }
        for text in ["(", "()", "(1", "(1)2", "(1/0)", "(1+)", "(2^200)", "(1)k"] {
            assert_eq!(bytes(text, FIO), None, "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
        assert_eq!(bytes(&deep, FIO), None);
    }

    #[test]
    fn a_value_counts_for_later_directions_unless_a_comma_ends_it() {
        let parse = |text| per_direction(text, |t| bytes(t, FIO)).map(|p| [p.read, p.write, p.trim]);
        assert_eq!(parse("4k"), Some([Some(4096); 3]));
        assert_eq!(parse("8k,32k"), Some([Some(8192), Some(32768), Some(32768)]));
        assert_eq!(parse("8k,32k,"), Some([Some(8192), Some(32768), None]));
        assert_eq!(parse(",8k"), Some([None, Some(8192), Some(8192)]));
        assert_eq!(parse(",8k,"), Some([None, Some(8192), None]));
        assert_eq!(parse("1,2,3,4"), None);
        assert_eq!(parse(","), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_panic(text in "\\PC{0,40}") {
            let _ = bytes(&text, FIO);
            let _ = time(&text, TimeUnit::Micros);
            let _ = extent(&text, FIO);
            let _ = per_direction(&text, |t| range(t, |v| bytes(v, FIO)));
        }

        #[test]
        fn any_soup_of_expression_tokens_is_evaluated_or_refused(
            tokens in prop::collection::vec(prop::sample::select(
                vec!["(", ")", "+", "-", "*", "/", "%", "^", "1", "7k", "0x9", " ", "99999999999"]), 0..30)
        ) {
            let _ = expression(&tokens.concat(), FIO);
        }

        #[test]
        fn a_plain_number_is_itself(n in 0..u64::MAX) {
            prop_assert_eq!(bytes(&n.to_string(), FIO), Some(n));
            prop_assert_eq!(bytes(&format!("{n:#x}"), FIO), Some(n));
        }
    }
}
