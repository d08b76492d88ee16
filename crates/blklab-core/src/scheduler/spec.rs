//! A scheduler as typed on a command line: `mq-deadline:fifo_batch=1,read_expire=200`.
//!
//! The one grammar of all rigs. [`SchedulerSpec::parse`] knows the simulated schedulers;
//! [`OpenSpec`] is for a real kernel, which may have other schedulers and tunables; [`written`] only
//! takes the text apart.

use blklab_base::pairs::{PairError, pairs};
use thiserror::Error;

use super::plugin::Made;
use super::registry;
use super::{Info, QUEUE_TUNABLES, Settings};
use crate::InputError;
use crate::text::{Hint, hint};
use crate::tunable::SettingError;

/// A simulated scheduler with its tunables, and the queue's own beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerSpec {
    /// The scheduler.
    pub info: &'static Info,
    /// Its tunables (`queue/iosched/`).
    pub settings: Settings,
    /// The queue's ([`QUEUE_TUNABLES`], `queue/`).
    pub queue: Settings,
    /// The scheduler itself if it is a plug-in.
    pub plugin: Option<Made>,
}

impl SchedulerSpec {
    /// Its name with the settings that are not the defaults, `bfq:slice_idle=0`.
    pub fn label(&self) -> String {
        let changed: Vec<_> = self.changed().map(|(name, value)| format!("{name}={value}")).collect();
        let colon = if changed.is_empty() { "" } else { ":" };
        format!("{}{colon}{}", self.info.name, changed.join(","))
    }
}

/// A scheduler of a kernel: known tunables are checked by the simulator's tables, others are left
/// to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSpec {
    /// Its name.
    pub name: String,
    /// The tunables that the simulator knows; for a scheduler that it lacks, only the queue's.
    pub known: SchedulerSpec,
    /// Other tunables with their values, in the order of the text.
    pub own: Vec<(String, String)>,
}

/// Why a text is not a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// No such scheduler.
    #[error("there is no scheduler '{name}'{hint}")]
    Unknown {
        /// The name as given.
        name: String,
        /// The nearest name, or all names.
        hint: Hint,
    },
    /// Not a name.
    #[error("scheduler '{found}': expected name[:tunable=value,...]")]
    NotAName {
        /// The whole text.
        found: String,
    },
    /// A setting without name, `=` or value.
    #[error("{scheduler}: expected tunable=value, found '{found}'")]
    NotASetting {
        /// The scheduler.
        scheduler: String,
        /// The piece between commas.
        found: String,
    },
    /// A setting given twice.
    #[error("{scheduler}: {name} is given twice")]
    Twice {
        /// The scheduler.
        scheduler: String,
        /// The tunable.
        name: String,
    },
    /// A wrong name or value.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

impl From<SpecError> for InputError {
    fn from(error: SpecError) -> InputError {
        let told = InputError::new(error.to_string());
        match error {
            SpecError::Unknown { name, hint } => told.found(name).nearest(hint.nearest),
            SpecError::NotAName { found } => told.found(found).expected("name[:tunable=value,...]"),
            SpecError::NotASetting { found, .. } => told.found(found).expected("tunable=value"),
            SpecError::Twice { name, .. } => told.option(name),
            SpecError::Setting(error) => error.into(),
        }
    }
}

/// A text taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<'a> {
    /// The name of any scheduler.
    pub name: &'a str,
    /// Tunables with their values, in the order of the text.
    pub settings: Vec<(&'a str, &'a str)>,
}

/// Take `NAME[:TUNABLE=VALUE[,TUNABLE=VALUE]...]` apart, without looking at names or values.
///
/// # Errors
/// The text has another form.
pub fn written(text: &str) -> Result<Written<'_>, SpecError> {
    let (name, rest) = split(text);
    if !is_word(name) {
        return Err(SpecError::NotAName { found: text.to_owned() });
    }
    Ok(Written { name, settings: settings(name, rest)? })
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((name, rest)) => (name.trim(), Some(rest)),
        None => (text.trim(), None),
    }
}

fn settings<'a>(scheduler: &str, rest: Option<&'a str>) -> Result<Vec<(&'a str, &'a str)>, SpecError> {
    let Some(rest) = rest else { return Ok(Vec::new()) };
    let scheduler = || scheduler.to_owned();
    let not_a_setting =
        |found: &str| SpecError::NotASetting { scheduler: scheduler(), found: found.to_owned() };
    let found = pairs(rest).map_err(|error| match error {
        PairError::NotAPair(found) => not_a_setting(found),
        PairError::Twice(name) => SpecError::Twice { scheduler: scheduler(), name: name.to_owned() },
    })?;
    match found.iter().find(|(name, _)| !is_word(name)) {
        Some((name, value)) => Err(not_a_setting(&format!("{name}={value}"))),
        None => Ok(found),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

impl SchedulerSpec {
    /// A scheduler with defaults.
    fn new(info: &'static Info) -> SchedulerSpec {
        let queue = Settings::defaults("queue", QUEUE_TUNABLES);
        SchedulerSpec { info, settings: info.settings(), queue, plugin: None }
    }

    /// Read `NAME[:TUNABLE=VALUE[,TUNABLE=VALUE]...]`.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn parse(text: &str) -> Result<SchedulerSpec, SpecError> {
        let (name, rest) = split(text);
        let info = SchedulerSpec::known(name)?;
        SchedulerSpec::with(info, &settings(info.name, rest)?)
    }

    /// The simulated scheduler of this name with these settings.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn of(written: &Written<'_>) -> Result<SchedulerSpec, SpecError> {
        SchedulerSpec::with(SchedulerSpec::known(written.name)?, &written.settings)
    }

    /// A plug-in with these settings; `info` describes it.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn of_plugin(
        info: &'static Info,
        made: Made,
        settings: &[(&str, &str)],
    ) -> Result<SchedulerSpec, SpecError> {
        Ok(SchedulerSpec { plugin: Some(made), ..SchedulerSpec::with(info, settings)? })
    }

    fn known(name: &str) -> Result<&'static Info, SpecError> {
        registry::info(name).ok_or_else(|| {
            let names: Vec<_> = registry::ALL.iter().map(|info| info.name).collect();
            SpecError::Unknown { name: name.to_owned(), hint: hint(name, &names) }
        })
    }

    fn with(info: &'static Info, settings: &[(&str, &str)]) -> Result<SchedulerSpec, SpecError> {
        let mut spec = SchedulerSpec::new(info);
        for (name, value) in settings {
            spec.set(name, value)?;
        }
        Ok(spec)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let of_queue = QUEUE_TUNABLES.iter().any(|tunable| tunable.name == name);
        if of_queue { self.queue.set(name, value) } else { self.settings.set(name, value) }
    }

    fn knows(&self, name: &str) -> bool {
        self.values().any(|(known, _)| known == name)
    }

    /// Every tunable's name and value, the scheduler's before the queue's.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.settings.iter().chain(self.queue.iter()).map(|(tunable, value)| (tunable.name, value))
    }

    /// The tunables in the text, including those set to the simulator's default: a real disk's default may
    /// differ.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.settings.given().chain(self.queue.given()).map(|(tunable, value)| (tunable.name, value))
    }

    /// The tunables that differ from their defaults.
    pub fn changed(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        let all = self.settings.iter().chain(self.queue.iter());
        all.filter(|(tunable, value)| tunable.default != *value).map(|(tunable, value)| (tunable.name, value))
    }
}

impl OpenSpec {
    /// Read the same text for a real kernel.
    ///
    /// # Errors
    /// The text is wrong, or the value of a known tunable.
    pub fn parse(text: &str) -> Result<OpenSpec, SpecError> {
        OpenSpec::of(&written(text)?)
    }

    /// The scheduler of this name with these settings, for a real kernel.
    ///
    /// # Errors
    /// The name is none, or the value of a known tunable is wrong.
    pub fn of(written: &Written<'_>) -> Result<OpenSpec, SpecError> {
        let &Written { name, ref settings } = written;
        if !is_word(name) {
            return Err(SpecError::NotAName { found: name.to_owned() });
        }
        let known = registry::info(name).or_else(|| registry::info("none"));
        let mut known = SchedulerSpec::new(known.expect("none is a scheduler"));
        let mut own = Vec::new();
        for &(tunable, value) in settings {
            if known.knows(tunable) {
                known.set(tunable, value)?;
            } else {
                own.push((tunable.to_owned(), value.to_owned()));
            }
        }
        Ok(OpenSpec { name: name.to_owned(), known, own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(text: &str) -> String {
        SchedulerSpec::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn tunables_of_scheduler_and_queue_are_told_apart() {
        let spec = SchedulerSpec::parse("mq-deadline:fifo_batch=1,nr_requests=32").unwrap();
        assert_eq!(spec.settings.get("fifo_batch"), 1);
        assert_eq!(spec.queue.get("nr_requests"), 32);
        assert_eq!(spec.changed().collect::<Vec<_>>(), [("fifo_batch", 1), ("nr_requests", 32)]);
        assert_eq!(SchedulerSpec::parse("none").unwrap().changed().count(), 0);
        let default = SchedulerSpec::parse("mq-deadline:fifo_batch=16").unwrap();
        assert_eq!(default.given().collect::<Vec<_>>(), [("fifo_batch", 16)]);
        assert_eq!(default.changed().count(), 0);
        assert_eq!(
            (spec.label(), default.label()),
            ("mq-deadline:fifo_batch=1,nr_requests=32".to_owned(), "mq-deadline".to_owned())
        );
        assert_eq!(SchedulerSpec::parse(&spec.label()), Ok(spec));
    }

    #[test]
    fn each_error_is_one_line() {
        assert_eq!(refused("mq-deadlin"), "there is no scheduler 'mq-deadlin'; did you mean 'mq-deadline'?");
        assert_eq!(refused("none:x=1"), "none has no tunable 'x'; it has none");
        assert_eq!(
            refused("mq-deadline:fifo_batch"),
            "mq-deadline: expected tunable=value, found 'fifo_batch'"
        );
        assert_eq!(refused("mq-deadline:"), "mq-deadline: expected tunable=value, found ''");
        assert_eq!(refused("mq-deadline:x y=1"), "mq-deadline: expected tunable=value, found 'x y=1'");
        assert_eq!(refused("kyber:read_lat_nsec=1,read_lat_nsec=2"), "kyber: read_lat_nsec is given twice");
        assert!(refused("mq-deadline:fifo_bach=1").contains("did you mean 'fifo_batch'?"));
        assert!(refused("mq-deadline:fifo_batch=x").contains("not a whole number"));
        assert!(refused("mq-deadline:fifo_batch=-1").contains("out of range"));
    }

    #[test]
    fn an_error_is_also_a_value() {
        let refused = |text| InputError::from(SchedulerSpec::parse(text).unwrap_err());
        let error = refused("mq-deadline:fifo_batch=-1");
        assert_eq!((error.option.as_deref(), error.found.as_deref()), (Some("fifo_batch"), Some("-1")));
        assert_eq!(error.expected.as_deref(), Some("0 to 2147483647"));
        let error = refused("mq-deadlin");
        assert_eq!(
            (error.found.as_deref(), error.nearest.as_deref()),
            (Some("mq-deadlin"), Some("mq-deadline"))
        );
        for text in ["", "mq-deadline:x=1", "mq-deadline:fifo_batch", "none:x=x,x=y"] {
            let error = SchedulerSpec::parse(text).unwrap_err();
            assert_eq!(InputError::from(error.clone()).to_string(), error.to_string());
        }
    }

    #[test]
    fn a_kernel_may_have_schedulers_and_tunables_of_its_own() {
        let mine = OpenSpec::parse("mine:nr_requests=8, z=x ,a=2").unwrap();
        assert_eq!((mine.name.as_str(), mine.known.info.name), ("mine", "none"));
        assert_eq!(mine.known.queue.get("nr_requests"), 8);
        let own: Vec<_> = mine.own.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(own, [("z", "x"), ("a", "2")], "in the order of the text");
        let refused = |text| OpenSpec::parse(text).unwrap_err().to_string();
        assert_eq!(refused("a b"), "scheduler 'a b': expected name[:tunable=value,...]");
        assert!(refused("kyber:read_lat_nsec=x").contains("not a whole number"));
        assert_eq!(refused("mine:a=1,a=2"), "mine: a is given twice");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "\\PC{0,40}|(none|mq-deadline|kyber)(:[a-z_]{0,12}(=[0-9-]{0,20})?,?){0,3}") {
            let open = OpenSpec::parse(&text);
            match SchedulerSpec::parse(&text) {
                Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
                // A kernel gets whatever the simulator takes, and the same of it.
                Ok(spec) => {
                    let open = open.unwrap();
                    prop_assert!(open.own.is_empty());
                    prop_assert_eq!(open.known, spec);
                }
            }
        }
    }
}
