//! Tunables and their values.

/// The unit of a tunable.
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
    /// Sectors of 512 bytes.
    Sectors,
    /// Percent.
    Percent,
    /// 0 or 1.
    Flag,
}

/// One tunable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Its name: letters, digits, `-` and `_`.
    pub name: &'static str,
    /// Unit of value, default and bounds.
    pub unit: Unit,
    /// Its value if none is given.
    pub default: i64,
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
    /// Its effect, in one line.
    pub help: &'static str,
}

/// Values for all tunables of one table, all within bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    table: &'static [Tunable],
    values: Vec<i64>,
}

impl Settings {
    /// All tunables with their defaults.
    pub fn defaults(table: &'static [Tunable]) -> Settings {
        Settings { table, values: table.iter().map(|tunable| tunable.default).collect() }
    }

    /// Sets the tunable of that number; blklab has checked the value.
    pub(crate) fn set(&mut self, index: usize, value: i64) {
        self.values[index] = value;
    }

    /// The value of a tunable of the scheduler's table.
    ///
    /// # Panics
    /// If the table has no such name.
    pub fn get(&self, name: &str) -> i64 {
        let index = self.table.iter().position(|tunable| tunable.name == name);
        self.values[index.unwrap_or_else(|| panic!("no tunable '{name}' in the table"))]
    }
}
