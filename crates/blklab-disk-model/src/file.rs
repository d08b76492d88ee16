//! The text of a disk file: TOML values, their comments, and errors with their place.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::Value;
use blklab_base::input_error::InputError;
use blklab_base::text;

/// A file's text, for lines, comments and messages.
pub(super) struct File<'a> {
    pub text: &'a str,
    /// Only for messages.
    pub path: &'a str,
}

impl File<'_> {
    /// The error about `key` at that byte.
    pub fn error(&self, at: usize, key: Option<&str>, wrong: InputError) -> InputError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let begin = before.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        InputError {
            reason: key.map(|key| format!("{key}: ")).unwrap_or_default() + &wrong.reason,
            file: Some(self.path.to_owned()),
            line: Some(1 + before.iter().filter(|b| **b == b'\n').count()),
            column: Some(1 + before.len() - begin),
            option: key.map(str::to_owned),
            ..wrong
        }
    }

    /// The text there, shortened for a message.
    pub fn slice(&self, span: &Range<usize>) -> String {
        let found = self.text.get(span.clone()).unwrap_or_default().replace(['\n', '\r'], " ");
        match found.char_indices().nth(40) {
            Some((cut, _)) => format!("{}...", &found[..cut]),
            None => found,
        }
    }

    /// The comment after a value, on the line of its end.
    pub fn comment(&self, span: &Range<usize>) -> String {
        let rest = self.text.get(span.end..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        line.split_once('#').map(|(_, comment)| comment.trim().to_owned()).unwrap_or_default()
    }
}

/// A TOML value as a key's value, if it has a form of any key.
pub(super) fn plain(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::Integer(_) | DeValue::Float(_) => number(value).map(Value::Number),
        DeValue::Boolean(b) => Some(Value::Flag(*b)),
        DeValue::String(s) => Some(Value::Text(s.to_string())),
        DeValue::Array(items) => {
            if let Some(list) = items.iter().map(|v| number(v.get_ref())).collect() {
                return Some(Value::Numbers(list));
            }
            let pair = |v: &Spanned<DeValue<'_>>| {
                let items = v.get_ref().as_array()?;
                let [a, b] = items.iter().as_slice() else { return None };
                Some((number(a.get_ref())?, number(b.get_ref())?))
            };
            if let Some(pairs) = items.iter().map(pair).collect::<Option<_>>() {
                return Some(Value::Pairs(pairs));
            }
            let row = |v: &Spanned<DeValue<'_>>| {
                v.get_ref().as_array()?.iter().map(|n| number(n.get_ref())).collect::<Option<Vec<f64>>>()
            };
            items.iter().map(row).collect::<Option<_>>().map(Value::Rows)
        }
        _ => None,
    }
}

/// A TOML number of either type.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
        DeValue::Float(n) => n.as_str().parse().ok(),
        _ => None,
    }
}

/// The entries of an inline table by name.
pub(super) fn fields<'a, 'i>(table: &'a DeTable<'i>) -> BTreeMap<&'a str, (&'a Spanned<DeValue<'i>>, usize)> {
    table.iter().map(|(name, value)| (name.get_ref().as_ref(), (value, name.span().start))).collect()
}

/// The error for another value than expected.
pub(super) fn other(found: String, expected: impl Into<String>) -> InputError {
    let expected = expected.into();
    InputError::new(format!("found {found}; expected {expected}")).found(found).expected(expected)
}

/// The error for a name that is not one of these.
pub(super) fn unknown(what: &str, name: &str, names: &[&str]) -> InputError {
    let hint = text::hint(name, names);
    InputError::new(format!("unknown {what}{hint}")).nearest(hint.nearest)
}
