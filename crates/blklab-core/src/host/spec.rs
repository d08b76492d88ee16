//! A host as typed on a command line: `name=value,...`, with `guest` or `@FILE` for the values that
//! the others replace.

use blklab_base::text::shown;

use super::{Host, TUNABLES};
use crate::InputError;
use crate::tunable::Unit;

/// The expected form.
const EXPECTED: &str = "name=number, @FILE or guest";

/// The values of a text, of which names and ranges are not checked yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// `guest` or `@FILE`.
    pub base: Option<String>,
    /// Values by name, in the order of the text.
    pub values: Vec<(String, i64)>,
}

impl HostSpec {
    /// Read it. Empty pieces between commas are left out.
    ///
    /// # Errors
    /// A piece has another form, a name is given twice, or there are two bases.
    pub fn parse(text: &str) -> Result<HostSpec, InputError> {
        let mut spec = HostSpec::default();
        for piece in text.split(',').map(str::trim).filter(|piece| !piece.is_empty()) {
            if piece == "guest" || piece.starts_with('@') {
                match &spec.base {
                    Some(base) if base != piece || piece != "guest" => {
                        let (found, base) = (shown(piece), shown(base));
                        return Err(InputError::new(format!("--host: '{found}' beside '{base}'; give one")));
                    }
                    _ => spec.base = Some(piece.to_owned()),
                }
                continue;
            }
            let wrong = || {
                let found = shown(piece);
                let reason = format!("--host: expected {EXPECTED}, found '{found}'; see: blklab host");
                InputError::new(reason).found(found).expected(EXPECTED)
            };
            let (name, value) = piece.split_once('=').ok_or_else(wrong)?;
            let (name, value) = (name.trim(), value.trim());
            let value = match word(name, value) {
                Some(found) => found?,
                None => value.parse().ok().filter(|_| !name.is_empty()).ok_or_else(wrong)?,
            };
            if spec.values.iter().any(|(other, _)| other == name) {
                let name = shown(name);
                return Err(InputError::new(format!("--host: '{name}' is given twice")).option(name));
            }
            spec.values.push((name.to_owned(), value));
        }
        Ok(spec)
    }
}

/// The number of a value that is a word, or its error; `None` for a tunable whose values are numbers.
fn word(name: &str, value: &str) -> Option<Result<i64, InputError>> {
    TUNABLES.iter().find(|row| row.name == name && matches!(row.unit, Unit::Word(_)))?;
    let mut settings = Host::settings();
    Some(settings.set(name, value).map(|()| settings.get(name)).map_err(InputError::from))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        HostSpec::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn values_replace_those_of_a_base() {
        let spec = HostSpec::parse("guest, cpus=4,hz = 100,guest").expect("a host");
        assert_eq!(spec.base.as_deref(), Some("guest"));
        assert_eq!(spec.values, [("cpus".to_owned(), 4), ("hz".to_owned(), 100)]);
        assert_eq!(HostSpec::parse(""), Ok(HostSpec::default()));
        assert_eq!(HostSpec::parse("@my.toml").expect("a file").base.as_deref(), Some("@my.toml"));
    }

    #[test]
    fn a_kernel_is_a_version_and_another_one_is_refused_with_those_there_are() {
        let spec = HostSpec::parse("guest,kernel=6.12").expect("a version");
        assert_eq!(spec.values, [("kernel".to_owned(), 6012)]);
        for wrong in ["6.13", "7", "", "6.12.107"] {
            let told = format!("host:kernel: expected 4.12, 6.12 or 7.3, found '{wrong}'");
            assert_eq!(error(&format!("kernel={wrong}")), told);
        }
    }

    #[test]
    fn each_other_form_is_refused() {
        let expected = "expected name=number, @FILE or guest, found";
        assert_eq!(error("cpus"), format!("--host: {expected} 'cpus'; see: blklab host"));
        assert_eq!(error("cpus=1.5"), format!("--host: {expected} 'cpus=1.5'; see: blklab host"));
        assert_eq!(error("=1"), format!("--host: {expected} '=1'; see: blklab host"));
        assert_eq!(error("cpus=1,cpus=2"), "--host: 'cpus' is given twice");
        assert_eq!(error("@a,guest"), "--host: 'guest' beside '@a'; give one");
        assert_eq!(error("@a,@a"), "--host: '@a' beside '@a'; give one");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = HostSpec::parse(&text);
        }
    }
}
