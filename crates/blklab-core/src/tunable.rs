//! One table per scheduler, and for the page cache and the host: the source of parser, `--help`,
//! docs and error messages.

use thiserror::Error;

use crate::InputError;
use crate::text::Hint;

/// The unit of a tunable, as in `queue/iosched`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of requests, batches or the like.
    Count,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// KiB.
    Kibibytes,
    /// Bytes.
    Bytes,
    /// MB (1,000,000 bytes) per second.
    MegabytesPerSecond,
    /// Sectors of 512 bytes.
    Sectors,
    /// Hundredths of a second, as in the `vm.dirty_*_centisecs` sysctls.
    Centiseconds,
    /// Percent.
    Percent,
    /// 0 or 1.
    Flag,
    /// One of these words, each of which stands for a number.
    Word(&'static [(&'static str, i64)]),
}

impl Unit {
    /// The number that `text` stands for.
    pub fn number(self, text: &str) -> Option<i64> {
        let Unit::Word(words) = self else { return text.parse().ok() };
        words.iter().find(|(word, number)| *word == text || text == number.to_string()).map(|found| found.1)
    }

    /// The symbol after a value; empty for plain numbers.
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::Count | Unit::Flag | Unit::Word(_) => "",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Nanoseconds => "ns",
            Unit::Kibibytes => "KiB",
            Unit::Bytes => "bytes",
            Unit::MegabytesPerSecond => "MB/s",
            Unit::Sectors => "sectors",
            Unit::Centiseconds => "cs",
            Unit::Percent => "%",
        }
    }
}

/// One tunable: a file in `queue/iosched`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// File name in `queue/iosched`.
    pub name: &'static str,
    /// Unit of value, default and bounds.
    pub unit: Unit,
    /// The kernel's default.
    pub default: i64,
    /// Smallest value that the kernel accepts.
    pub min: i64,
    /// Largest value that the kernel accepts.
    pub max: i64,
    /// Its effect, in one line.
    pub help: &'static str,
}

impl Tunable {
    /// The accepted values, in words.
    fn allowed(&self) -> String {
        match self.unit {
            Unit::Flag => format!("{} or {}", self.min, self.max),
            Unit::Word([words @ .., (last, _)]) if !words.is_empty() => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                format!("{} or {last}", words.join(", "))
            }
            Unit::Word(words) => words.iter().map(|(word, _)| *word).collect(),
            unit => format!("{} to {} {}", self.min, self.max, unit.symbol()).trim_end().to_owned(),
        }
    }
}

/// Values for all tunables of one table, all within bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    owner: &'static str,
    table: &'static [Tunable],
    values: Vec<i64>,
    /// Which values were set, even to their default.
    chosen: Vec<bool>,
}

/// Why a setting is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingError {
    /// No such tunable.
    #[error("{owner} has no tunable '{name}'{hint}")]
    Unknown {
        /// The owner of the table.
        owner: &'static str,
        /// The name as given.
        name: String,
        /// The nearest name, or all.
        hint: Hint,
    },
    /// Not one of the words.
    #[error("{owner}:{name}: expected {allowed}, found '{found}'")]
    NotAWord {
        /// The owner of the table.
        owner: &'static str,
        /// The tunable.
        name: &'static str,
        /// The value as given.
        found: String,
        /// The accepted words: `4.12, 6.12 or 7.3`.
        allowed: String,
    },
    /// Not a whole number.
    #[error("{owner}:{name}: '{found}' is not a whole number ({allowed})")]
    NotANumber {
        /// The owner of the table.
        owner: &'static str,
        /// The tunable.
        name: &'static str,
        /// The value as given.
        found: String,
        /// The accepted values: `0 to 1000 ms`.
        allowed: String,
    },
    /// Outside the bounds.
    #[error("{owner}:{name}: {found} is out of range ({allowed})")]
    OutOfRange {
        /// The owner of the table.
        owner: &'static str,
        /// The tunable.
        name: &'static str,
        /// The value as given.
        found: i64,
        /// The accepted values: `0 to 1000 ms`.
        allowed: String,
    },
}

impl From<SettingError> for InputError {
    fn from(error: SettingError) -> InputError {
        let told = InputError::new(error.to_string());
        match error {
            SettingError::Unknown { name, hint, .. } => told.option(name).nearest(hint.nearest),
            SettingError::NotANumber { name, found, allowed, .. }
            | SettingError::NotAWord { name, found, allowed, .. } => {
                told.option(name).found(found).expected(allowed)
            }
            SettingError::OutOfRange { name, found, allowed, .. } => {
                told.option(name).found(found.to_string()).expected(allowed)
            }
        }
    }
}

impl Settings {
    /// All tunables with their defaults.
    pub fn defaults(owner: &'static str, table: &'static [Tunable]) -> Settings {
        let values = table.iter().map(|t| t.default).collect();
        Settings { owner, table, values, chosen: vec![false; table.len()] }
    }

    /// The owner of the table.
    pub fn owner(&self) -> &'static str {
        self.owner
    }

    /// Sets one tunable from text.
    ///
    /// # Errors
    /// An unknown name, text that is no whole number, a value outside its bounds.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let owner = self.owner;
        let Some(index) = self.table.iter().position(|t| t.name == name) else {
            let names: Vec<_> = self.table.iter().map(|t| t.name).collect();
            return Err(SettingError::Unknown {
                owner,
                name: name.to_owned(),
                hint: crate::text::hint(name, &names),
            });
        };
        let tunable = &self.table[index];
        let name = tunable.name;
        let Some(found) = tunable.unit.number(value.trim()) else {
            let (found, allowed) = (value.to_owned(), tunable.allowed());
            return Err(match tunable.unit {
                Unit::Word(_) => SettingError::NotAWord { owner, name, found, allowed },
                _ => SettingError::NotANumber { owner, name, found, allowed },
            });
        };
        if found < tunable.min || found > tunable.max {
            return Err(SettingError::OutOfRange { owner, name, found, allowed: tunable.allowed() });
        }
        self.values[index] = found;
        self.chosen[index] = true;
        Ok(())
    }

    /// The value of a tunable that the scheduler's own table has.
    ///
    /// # Panics
    /// If the table has no such name: a bug in the scheduler's file.
    pub fn get(&self, name: &str) -> i64 {
        self.values[self.index(name)]
    }

    /// The value if it was set, for tunables whose default depends on the disk.
    ///
    /// # Panics
    /// As [`Settings::get`].
    pub fn chosen(&self, name: &str) -> Option<i64> {
        let index = self.index(name);
        self.chosen[index].then(|| self.values[index])
    }

    fn index(&self, name: &str) -> usize {
        let index = self.table.iter().position(|t| t.name == name);
        index.unwrap_or_else(|| panic!("no tunable '{name}' in the table"))
    }

    /// The tunables that were set, also those set to their defaults.
    pub fn given(&self) -> impl Iterator<Item = (&'static Tunable, i64)> + '_ {
        self.iter().zip(&self.chosen).filter(|(_, chosen)| **chosen).map(|(setting, _)| setting)
    }

    /// Names and values, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Tunable, i64)> + '_ {
        self.table.iter().zip(self.values.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn tunable(name: &'static str, unit: Unit, max: i64) -> Tunable {
        Tunable { name, unit, default: 1, min: 0, max, help: "" }
    }

    #[test]
    fn a_refusal_lists_the_accepted_values() {
        const TABLE: &[Tunable] = &[
            tunable("flag", Unit::Flag, 1),
            tunable("count", Unit::Count, 9),
            tunable("span", Unit::Milliseconds, 1000),
            tunable("size", Unit::Word(&[("small", 0), ("large", 7)]), 7),
        ];
        let refused = |name, value| Settings::defaults("s", TABLE).set(name, value).unwrap_err().to_string();
        assert_eq!(refused("flag", "2"), "s:flag: 2 is out of range (0 or 1)");
        assert_eq!(refused("flag", "on"), "s:flag: 'on' is not a whole number (0 or 1)");
        assert_eq!(refused("count", "10"), "s:count: 10 is out of range (0 to 9)");
        assert_eq!(refused("span", "-1"), "s:span: -1 is out of range (0 to 1000 ms)");
        assert_eq!(refused("size", "6"), "s:size: expected small or large, found '6'");
        let mut settings = Settings::defaults("s", TABLE);
        for (text, number) in [("large", 7), ("0", 0)] {
            settings.set("size", text).expect("a word or its number");
            assert_eq!(settings.get("size"), number);
        }
    }
}
