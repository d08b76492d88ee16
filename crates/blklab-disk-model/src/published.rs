//! The `[published]` table of a disk file: published figures of the disk, with which the model is compared.
//! The model never reads them.

use toml::Spanned;
use toml::de::DeValue;

use super::model::{File, fields, number, other, unknown};
use super::validate::{FIGURES, Figure};
use blklab_base::input_error::InputError;

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The kind of figure.
    pub figure: &'static Figure,
    /// Its value in the figure's unit.
    pub value: f64,
    /// The allowed deviation of the model, in per cent of the value.
    pub tolerance_percent: f64,
    /// The reason why the model does not reach it, if that is known and accepted.
    pub not_met: Option<String>,
    /// The source of the figure.
    pub source: String,
}

/// Reads the table `value`; its entries are
/// `figure = { value = 110, tolerance_percent = 10, not_met = "reason" }  # source`.
pub(super) fn parse(file: &File<'_>, value: &Spanned<DeValue<'_>>) -> Result<Vec<Published>, InputError> {
    let Some(table) = value.get_ref().as_table() else {
        let wrong = other(file.slice(&value.span()), "a table of figures");
        return Err(file.error(value.span().start, Some("published"), wrong));
    };
    let mut rows = Vec::new();
    for (name, (entry, at)) in fields(table) {
        let fail = |wrong| file.error(at, Some(name), wrong);
        let Some(figure) = FIGURES.iter().find(|f| f.name == name) else {
            let names: Vec<_> = FIGURES.iter().map(|f| f.name).collect();
            return Err(fail(unknown("figure", name, &names)));
        };
        let Some(inner) = entry.get_ref().as_table() else {
            let found = file.slice(&entry.span());
            return Err(fail(other(found, "{ value = ..., tolerance_percent = ... }")));
        };
        let parts = fields(inner);
        let known = ["value", "tolerance_percent", "not_met"];
        if let Some(word) = parts.keys().find(|word| !known.contains(word)) {
            return Err(fail(unknown(&format!("key '{word}'"), word, &known)));
        }
        let part = |word: &str, min: f64, max: f64| {
            let found = parts.get(word).map(|(v, _)| *v);
            match found.and_then(|v| number(v.get_ref())).filter(|n| *n >= min && *n <= max) {
                Some(n) => Ok(n),
                None => {
                    let found = found.map_or("nothing".to_owned(), |v| file.slice(&v.span()));
                    let wrong = other(found, format!("a number from {min} to {max}"));
                    Err(fail(InputError { reason: format!("{word}: {}", wrong.reason), ..wrong }))
                }
            }
        };
        let not_met = match parts.get("not_met") {
            None => None,
            Some((reason, _)) => match reason.get_ref().as_str() {
                Some(reason) => Some(reason.to_owned()),
                None => {
                    let wrong = InputError::new("not_met: expected the reason as text");
                    return Err(fail(wrong.expected("the reason as text")));
                }
            },
        };
        let row = Published {
            figure,
            value: part("value", 1e-6, 1e12)?,
            tolerance_percent: part("tolerance_percent", 0.0, 100.0)?,
            not_met,
            source: file.comment(&entry.span()),
        };
        rows.push((at, row));
    }
    rows.sort_by_key(|(at, _)| *at);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}
