//! The published figures of a disk, with which the model is compared; the model never reads them. The table
//! `[calibrated]` has figures that determined parameters of the file, `[checked]` has independent figures.

use toml::Spanned;
use toml::de::DeValue;

use super::figures::{FIGURES, Figure};
use super::file::{File, fields, number, other, unknown};
use blklab_base::input_error::InputError;

/// Names of the two tables.
pub(super) const TABLES: [&str; 2] = ["calibrated", "checked"];

/// The use of a published figure for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Parameters were chosen from it or from its source, so a model that meets it proves nothing.
    Calibrated,
    /// No parameter was chosen from it.
    Checked,
}

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The kind of figure.
    pub figure: &'static Figure,
    /// The table that contains it.
    pub role: Role,
    /// Its value in the figure's unit.
    pub value: f64,
    /// The allowed deviation of the model, in per cent of the value.
    pub tolerance_percent: f64,
    /// The reason why the model does not reach it, if that is known and accepted.
    pub not_met: Option<String>,
    /// The source of the figure.
    pub source: String,
}

/// Reads the two tables; an entry is
/// `figure = { value = 110, tolerance_percent = 10, not_met = "reason" }  # source`.
pub(super) fn parse(
    file: &File<'_>,
    calibrated: Option<&Spanned<DeValue<'_>>>,
    checked: Option<&Spanned<DeValue<'_>>>,
) -> Result<Vec<Published>, InputError> {
    let calibrated = calibrated.map_or(Ok(Vec::new()), |value| table(file, value, Role::Calibrated))?;
    let checked = checked.map_or(Ok(Vec::new()), |value| table(file, value, Role::Checked))?;
    for (at, row) in &checked {
        let fail = |wrong| Err(file.error(*at, Some(row.figure.name), wrong));
        if calibrated.iter().any(|(_, other)| other.figure == row.figure && other.value == row.value) {
            return fail(InputError::new(
                "is in [calibrated] too; a figure that a parameter was chosen from cannot check the model",
            ));
        }
        if is_estimate(&row.source) {
            let message = "found an estimate; a check needs a published or measured figure";
            return fail(InputError::new(message).found(&row.source));
        }
        if row.source.is_empty() {
            let message = "no source; expected it behind the value, after '#'";
            return fail(InputError::new(message).expected("a source behind the value, after '#'"));
        }
    }
    Ok(calibrated.into_iter().chain(checked).map(|(_, row)| row).collect())
}

/// Whether a source marks the value as an estimate.
pub(super) fn is_estimate(source: &str) -> bool {
    source.starts_with("estimate")
}

/// The rows of one table in the file's order, each with its position.
fn table(
    file: &File<'_>,
    value: &Spanned<DeValue<'_>>,
    role: Role,
) -> Result<Vec<(usize, Published)>, InputError> {
    let Some(entries) = value.get_ref().as_table() else {
        let wrong = other(file.slice(&value.span()), "a table of figures");
        return Err(file.error(value.span().start, Some(TABLES[role as usize]), wrong));
    };
    let mut rows = Vec::new();
    for (name, (entry, at)) in fields(entries) {
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
            role,
            value: part("value", 1e-6, 1e12)?,
            tolerance_percent: part("tolerance_percent", 0.0, 100.0)?,
            not_met,
            source: file.comment(&entry.span()),
        };
        rows.push((at, row));
    }
    rows.sort_by_key(|(at, _)| *at);
    Ok(rows)
}
