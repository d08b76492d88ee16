//! Host files: the values of `--host` in TOML, as `blklab host measure` writes them.
//!
//! The table `[host]` has tunables of the host and of its page cache by name; `lock_ns.kyber = 860` is a
//! dotted key. The table `[measured]` says where the values come from, and is not read.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::InputError;
use crate::host::{self, Host};
use crate::pagecache::{self, MemoryConfig};
use crate::text;

const HOST: &str = "host";
const MEASURED: &str = "measured";

/// The values of a host file, by name, in its order. `path` is only for messages.
///
/// # Errors
/// Text that is not TOML, another table, an unknown name, a value outside its bounds. Each names its line.
pub fn parse(text: &str, path: &str) -> Result<Vec<(String, i64)>, InputError> {
    let file = File { text, path };
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        file.error(at, InputError::new(format!("not TOML: {}", error.message().replace('\n', " "))))
    })?;
    let mut values = Vec::new();
    let mut has_host = false;
    for (name, value) in in_order(root.get_ref()) {
        match (name.get_ref().as_ref(), value.get_ref()) {
            (HOST, DeValue::Table(table)) => {
                has_host = true;
                file.collect(table, "", &mut values)?;
            }
            (MEASURED, DeValue::Table(_)) => {}
            (word, _) => {
                let expected = format!("the table [{HOST}] or [{MEASURED}]");
                let wrong = InputError::new(format!("{word}: expected {expected}")).option(word);
                return Err(file.error(name.span().start, wrong.expected(expected)));
            }
        }
    }
    if !has_host {
        return Err(file.error(0, InputError::new(format!("the table [{HOST}] is missing"))));
    }
    Ok(values)
}

/// Entries of a table in the order of the file.
fn in_order<'a, 'i>(
    table: &'a DeTable<'i>,
) -> Vec<(&'a Spanned<toml::de::DeString<'i>>, &'a Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

struct File<'a> {
    text: &'a str,
    path: &'a str,
}

impl File<'_> {
    /// The values of `table`, whose names begin with `before`.
    fn collect(
        &self,
        table: &DeTable<'_>,
        before: &str,
        values: &mut Vec<(String, i64)>,
    ) -> Result<(), InputError> {
        for (name, value) in in_order(table) {
            let (whole, at) = (format!("{before}{}", name.get_ref()), name.span().start);
            if let (DeValue::Table(inner), true) = (value.get_ref(), before.is_empty()) {
                self.collect(inner, &format!("{whole}."), values)?;
                continue;
            }
            let found = self.text.get(value.span()).unwrap_or_default();
            let value = check(&whole, found).map_err(|wrong| self.error(at, wrong))?;
            values.push((whole, value));
        }
        Ok(())
    }

    fn error(&self, at: usize, wrong: InputError) -> InputError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        InputError {
            file: Some(self.path.to_owned()),
            line: Some(1 + before.iter().filter(|byte| **byte == b'\n').count()),
            column: Some(1 + before.len() - begin),
            ..wrong
        }
    }
}

/// The value of a tunable of the host or of its page cache.
///
/// # Errors
/// An unknown name, text that is no whole number, a value outside its bounds.
pub fn check(name: &str, found: &str) -> Result<i64, InputError> {
    let is_memory = pagecache::TUNABLES.iter().any(|tunable| tunable.name == name);
    let mut table = if is_memory { MemoryConfig::settings() } else { Host::settings() };
    if !is_memory && !host::TUNABLES.iter().any(|tunable| tunable.name == name) {
        // Each table knows only its own names.
        let names: Vec<_> = host::TUNABLES.iter().chain(pagecache::TUNABLES).map(|row| row.name).collect();
        let hint = text::hint(name, &names);
        let wrong = InputError::new(format!("host has no tunable '{}'{hint}", text::shown(name)));
        return Err(wrong.option(name).nearest(hint.nearest));
    }
    table.set(name, &found.replace('_', ""))?;
    Ok(table.get(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text, "my.toml").unwrap_err().to_string()
    }

    #[test]
    fn a_host_file_has_tunables_of_the_host_and_of_its_page_cache() {
        let text = "# Measured\n\n[host]\nhz = 250\ncpus = 2\nlock_ns.mq-deadline = 1300\nmemory_kb = 1_000_000\n\n\
                    [measured]\nkernel = \"6.18\"\n";
        let expected = [("hz", 250), ("cpus", 2), ("lock_ns.mq-deadline", 1300), ("memory_kb", 1_000_000)];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(parse(text, "my.toml").expect("a good file"), expected);
        assert_eq!(parse("[host]\n", "my.toml").expect("no value"), []);
    }

    #[test]
    fn a_wrong_host_file_is_refused_with_its_line() {
        assert_eq!(
            refused("[host]\ncpu = 2\n"),
            "my.toml:2: host has no tunable 'cpu'; did you mean 'cpus'?"
        );
        assert_eq!(
            refused("[host]\nlock_ns.kyberr = 2\n"),
            "my.toml:2: host has no tunable 'lock_ns.kyberr'; did you mean 'lock_ns.kyber'?"
        );
        assert_eq!(refused("[host]\n\ncpus = 0\n"), "my.toml:3: host:cpus: 0 is out of range (1 to 1024)");
        assert_eq!(
            refused("[host]\ncpus = \"two\"\n"),
            "my.toml:2: host:cpus: '\"two\"' is not a whole number (1 to 1024)"
        );
        assert_eq!(refused("cpus = 2\n"), "my.toml:1: cpus: expected the table [host] or [measured]");
        assert_eq!(refused("# nothing\n"), "my.toml:1: the table [host] is missing");
        assert!(refused("[host\n").starts_with("my.toml:1: not TOML: "), "{}", refused("[host\n"));
    }
}
