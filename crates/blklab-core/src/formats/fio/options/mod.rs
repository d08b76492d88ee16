//! fio's options: one row each, with parser, unit, bounds, default and help.
//!
//! A row has the type of the option's value and, if the simulator uses it, its place in the
//! [`Draft`]. Names, units, bounds and defaults are those of fio 3.33 (`fio --cmdhelp=NAME`). There
//! is one file of rows per subject.

mod access;
mod draft;
mod files;
mod foreign;
pub mod real;
mod report;
mod run;
mod unsimulated;

pub use draft::{Draft, PERCENTILES};

use super::value::{self, KbBase, TimeUnit};
use crate::text;
use crate::units::Nanos;
use crate::workload::error::Problem;
use crate::workload::spec::{Engine, Extent, PerDirection};

/// Upper bound of options that fio keeps in 32 bits.
const U32_MAX: u64 = u32::MAX as u64;

/// Upper bound of sizes: 63 bits, as for fio's and the kernel's offsets.
const SIZE_BOUND: &str = "below 8 EiB";

/// The values of a row for each direction; `None` where none was given.
pub type Given<T> = PerDirection<Option<T>>;

/// The type of an option's value, and the function that stores it.
#[derive(Clone, Copy)]
pub enum Takes {
    /// Nothing, or 0 or 1.
    Flag(fn(&mut Draft, bool)),
    /// 0 or 1.
    Bool(fn(&mut Draft, bool)),
    /// A whole number between two bounds.
    Count(u64, u64, fn(&mut Draft, u64)),
    /// One for each direction.
    Counts(u64, u64, fn(&mut Draft, Given<u64>)),
    /// Bytes, at least this many.
    Size(u64, fn(&mut Draft, u64)),
    /// Bytes between two bounds, for each direction.
    Sizes(u64, u64, fn(&mut Draft, Given<u64>)),
    /// A size or a range of sizes, at least this many bytes.
    SizeRange(u64, fn(&mut Draft, (u64, u64))),
    /// A range of sizes between two bounds, for each direction.
    SizeRanges(u64, u64, fn(&mut Draft, Given<(u64, u64)>)),
    /// Bytes or percent.
    Extent(fn(&mut Draft, Extent)),
    /// A time.
    Time(TimeUnit, fn(&mut Draft, Nanos)),
    /// A time or a range of times.
    TimeRange(TimeUnit, fn(&mut Draft, (Nanos, Nanos))),
    /// One of these words.
    Word(&'static [&'static str], fn(&mut Draft, &str) -> Result<(), Refusal>),
    /// One of these words; some take a parameter after a colon.
    WordAnd(&'static [&'static str], fn(&mut Draft, &str, Option<&str>) -> Result<(), Refusal>),
    /// Up to this many numbers between 0 and 100, with colons between them.
    Percentages(usize, fn(&mut Draft, Vec<f64>)),
    /// Any text or none; read and ignored.
    AnyText,
    /// Any text; the row parses it.
    Text(fn(&mut Draft, &str) -> Result<(), Refusal>),
}

/// Why a row refuses a value of the right form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The expected values.
    Expected(String),
    /// fio supports it, the simulator does not; the reason.
    NotSimulated(&'static str),
}

/// How an option is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It works as in fio.
    Simulated,
    /// It is checked and changes nothing; the reason.
    NoEffect(&'static str),
    /// It is refused in a simulation, which cannot follow it; the reason. On a real disk fio
    /// performs it.
    RealOnly(&'static str),
    /// It is refused; the reason, or the alternative.
    NotSimulated(&'static str),
    /// It is refused: only these engines have it, and none of them is simulated.
    OtherEngine(&'static [&'static str]),
}

impl Status {
    /// The reason of a refusal; `None` if the option is not refused.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Status::Simulated | Status::NoEffect(_) => None,
            Status::NotSimulated(why) | Status::RealOnly(why) => Some((*why).to_owned()),
            Status::OtherEngine(engines) => Some(format!("it belongs to ioengine={}", engines.join(" or "))),
        }
    }
}

/// One option.
#[derive(Clone, Copy)]
pub struct JobOption {
    /// fio's name.
    pub name: &'static str,
    /// fio's other names for it.
    pub aliases: &'static [&'static str],
    /// The type of its value.
    pub takes: Takes,
    /// fio's default in job-file notation; empty for none.
    pub default: &'static str,
    /// Its effect, in one line.
    pub help: &'static str,
    /// How it is treated.
    pub status: Status,
    /// The engines that have it; empty for all.
    pub engines: &'static [Engine],
    /// Words that fio supports and the simulator does not.
    pub not_simulated_words: &'static [&'static str],
}

impl JobOption {
    /// A simulated option.
    const fn new(name: &'static str, takes: Takes, default: &'static str, help: &'static str) -> JobOption {
        JobOption {
            name,
            aliases: &[],
            takes,
            default,
            help,
            status: Status::Simulated,
            engines: &[],
            not_simulated_words: &[],
        }
    }

    const fn alias(mut self, aliases: &'static [&'static str]) -> JobOption {
        self.aliases = aliases;
        self
    }

    const fn only_for(mut self, engines: &'static [Engine]) -> JobOption {
        self.engines = engines;
        self
    }

    const fn not_simulated_words(mut self, words: &'static [&'static str]) -> JobOption {
        self.not_simulated_words = words;
        self
    }

    const fn real_only(mut self, why: &'static str) -> JobOption {
        self.status = Status::RealOnly(why);
        self
    }

    const fn no_effect(mut self, why: &'static str) -> JobOption {
        self.status = Status::NoEffect(why);
        self
    }

    /// The option's values, in words.
    pub fn expects(&self) -> String {
        match self.takes {
            Takes::Flag(_) => "nothing, 0 or 1".to_owned(),
            Takes::Bool(_) => "0 or 1".to_owned(),
            Takes::Count(min, max, _) => format!("a whole number, {}", bounds(min, max)),
            Takes::Counts(min, max, _) => {
                format!("whole numbers, {}, as READ,WRITE,TRIM or one for all", bounds(min, max))
            }
            Takes::Size(min, _) => format!("bytes such as 4k or 1g, {}, {SIZE_BOUND}", bounds(min, u64::MAX)),
            Takes::Sizes(min, max, _) => {
                format!("bytes such as 4k, {}, as READ,WRITE,TRIM or one for all", bounds(min, max))
            }
            Takes::SizeRange(min, _) => {
                format!("bytes such as 1m or 1m-8m, {}, {SIZE_BOUND}", bounds(min, u64::MAX))
            }
            Takes::SizeRanges(min, max, _) => {
                format!("ranges such as 4k-64k, {}, as READ,WRITE,TRIM or one for all", bounds(min, max))
            }
            Takes::Extent(_) => format!("bytes such as 1g, {SIZE_BOUND}, or 0% to 100%"),
            Takes::Time(unit, _) => format!("a time such as {}", time_example(unit)),
            Takes::TimeRange(unit, _) => {
                format!("a time or a range such as 1s-5s ({})", time_example(unit))
            }
            Takes::Word(words, _) | Takes::WordAnd(words, _) => format!("one of {}", words.join(", ")),
            Takes::Percentages(most, _) => {
                format!("up to {most} numbers from 0 to 100, such as 50:99:99.9")
            }
            Takes::AnyText => "nothing, or a value".to_owned(),
            Takes::Text(_) => "a value".to_owned(),
        }
    }

    /// Parses `found` and stores it in `draft`. `written` is the name as given.
    ///
    /// # Errors
    /// A value that the option does not accept, or that is not simulated.
    pub fn apply(&self, draft: &mut Draft, written: &str, found: Option<&str>) -> Result<(), Problem> {
        if let Some(reason) = self.status.refusal() {
            return Err(Problem::NotSimulated { name: written.to_owned(), reason });
        }
        self.lay(draft, written, found)
    }

    /// As `apply`, for real fio: accepts what only a simulation refuses.
    ///
    /// # Errors
    /// A value that the option does not accept, or that neither fio nor the rig supports.
    pub fn apply_real(&self, draft: &mut Draft, written: &str, found: Option<&str>) -> Result<(), Problem> {
        match self.status {
            Status::RealOnly(_) => self.lay(draft, written, found),
            _ => self.apply(draft, written, found),
        }
    }

    fn lay(&self, draft: &mut Draft, written: &str, found: Option<&str>) -> Result<(), Problem> {
        let name = || written.to_owned();
        let Some(value) = found else {
            return match self.takes {
                Takes::Flag(set) => {
                    set(draft, true);
                    Ok(())
                }
                Takes::AnyText => Ok(()),
                _ => Err(Problem::NoValue { name: name(), expected: self.expects() }),
            };
        };
        let word = value.split(':').next().unwrap_or(value).trim();
        if self.not_simulated_words.contains(&word) {
            let reason = format!("simulated are {}", self.words().join(", "));
            return Err(Problem::ValueNotSimulated { name: name(), found: value.to_owned(), reason });
        }
        self.set(draft, value.trim()).map_err(|refusal| match refusal {
            None => Problem::BadValue {
                name: name(),
                found: value.to_owned(),
                expected: self.expects(),
                nearest: self.nearest_word(value),
            },
            Some(Refusal::Expected(expected)) => {
                Problem::BadValue { name: name(), found: value.to_owned(), expected, nearest: None }
            }
            Some(Refusal::NotSimulated(why)) => {
                Problem::ValueNotSimulated { name: name(), found: value.to_owned(), reason: why.to_owned() }
            }
        })
    }

    /// The words that it accepts, if any.
    fn words(&self) -> &'static [&'static str] {
        match self.takes {
            Takes::Word(words, _) | Takes::WordAnd(words, _) => words,
            _ => &[],
        }
    }

    fn nearest_word(&self, value: &str) -> Option<String> {
        let word = value.split(':').next().unwrap_or(value);
        text::nearest(word, self.words()).map(str::to_owned)
    }

    /// `Err(None)` if the value does not have the form of `expects`.
    fn set(&self, draft: &mut Draft, value: &str) -> Result<(), Option<Refusal>> {
        let base = draft.kb_base;
        let within = |min: u64, max: u64| move |n: &u64| (min..=max).contains(n);
        let number = |v: &str| value::bytes(v, base);
        match self.takes {
            Takes::Flag(set) | Takes::Bool(set) => match value {
                "0" => set(draft, false),
                "1" => set(draft, true),
                _ => return Err(None),
            },
            Takes::Count(min, max, set) => set(draft, number(value).filter(within(min, max)).ok_or(None)?),
            Takes::Size(min, set) => {
                set(draft, number(value).filter(within(min, i64::MAX as u64)).ok_or(None)?);
            }
            Takes::Counts(min, max, set) | Takes::Sizes(min, max, set) => {
                let one = |v: &str| number(v).filter(within(min, max));
                set(draft, value::per_direction(value, one).ok_or(None)?);
            }
            Takes::SizeRange(min, set) => {
                let one = |v: &str| number(v).filter(within(min, i64::MAX as u64));
                set(draft, value::range(value, one).ok_or(None)?);
            }
            Takes::SizeRanges(min, max, set) => {
                let one = |v: &str| number(v).filter(within(min, max));
                let range = |v: &str| if v.contains(['-', ':']) { value::range(v, one) } else { None };
                set(draft, value::per_direction(value, range).ok_or(None)?);
            }
            Takes::Extent(set) => {
                let extent = value::extent(value, base).filter(|e| match e {
                    Extent::Bytes(bytes) => bytes.0 <= i64::MAX as u64,
                    Extent::Percent(_) => true,
                });
                set(draft, extent.ok_or(None)?);
            }
            Takes::Time(unit, set) => set(draft, value::time(value, unit).ok_or(None)?),
            Takes::TimeRange(unit, set) => {
                set(draft, value::range(value, |v| value::time(v, unit)).ok_or(None)?);
            }
            Takes::Word(words, set) => {
                let word = words.iter().find(|w| **w == value).ok_or(None)?;
                set(draft, word)?;
            }
            Takes::WordAnd(words, set) => {
                let (word, more) = match value.split_once(':') {
                    Some((word, more)) => (word, Some(more)),
                    None => (value, None),
                };
                let word = words.iter().find(|w| **w == word).ok_or(None)?;
                set(draft, word, more)?;
            }
            Takes::Percentages(most, set) => {
                let one = |v: &str| v.trim().parse::<f64>().ok().filter(|f| (0.0..=100.0).contains(f));
                let list: Option<Vec<f64>> = value.split(':').map(one).collect();
                set(draft, list.filter(|l| l.len() <= most).ok_or(None)?);
            }
            Takes::AnyText => {}
            Takes::Text(set) => {
                if value.is_empty() {
                    return Err(None);
                }
                set(draft, value)?;
            }
        }
        Ok(())
    }
}

fn bounds(min: u64, max: u64) -> String {
    match (min, max) {
        (0, u64::MAX) => "not negative".to_owned(),
        (min, u64::MAX) => format!("at least {min}"),
        (min, max) => format!("{min} to {max}"),
    }
}

const fn time_example(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Micros => "500us, 20ms or 1s; microseconds without a unit; up to 36500d",
        TimeUnit::Seconds => "30s, 500ms or 2m; seconds without a unit; up to 36500d",
    }
}

/// All options, by subject.
pub fn all() -> impl Iterator<Item = &'static JobOption> {
    [access::OPTIONS, files::OPTIONS, run::OPTIONS, report::OPTIONS, unsimulated::OPTIONS, foreign::OPTIONS]
        .into_iter()
        .flatten()
}

/// The option of that name or alias.
pub fn find(name: &str) -> Option<&'static JobOption> {
    all().find(|option| option.name == name || option.aliases.contains(&name))
}

/// The problem for a name that no option has.
pub fn unknown(name: &str) -> Problem {
    let names: Vec<&str> =
        all().flat_map(|option| option.aliases.iter().copied().chain([option.name])).collect();
    let nearest = text::nearest(name, &names).map(str::to_owned);
    Problem::UnknownOption { name: name.to_owned(), nearest }
}

/// For rows that are checked and change nothing.
mod ignore {
    use super::{Draft, Refusal};

    pub fn flag(_: &mut Draft, _: bool) {}
    pub fn count(_: &mut Draft, _: u64) {}
    pub fn word(_: &mut Draft, _: &str) -> Result<(), Refusal> {
        Ok(())
    }
    pub fn word_and(_: &mut Draft, _: &str, _: Option<&str>) -> Result<(), Refusal> {
        Ok(())
    }
}

/// The `kb_base` of a word in the table's rows.
fn kb_base(word: &str) -> KbBase {
    if word == "1000" { KbBase::Standard } else { KbBase::Compatible }
}
