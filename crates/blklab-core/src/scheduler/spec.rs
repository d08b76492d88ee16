//! A scheduler as typed on a command line: `mq-deadline:fifo_batch=1,read_expire=200`.

use thiserror::Error;

use super::registry;
use super::{Info, QUEUE_TUNABLES, Settings};
use crate::text::hint;
use crate::tunable::SettingError;

/// A scheduler with its tunables, and the queue's own beside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerSpec {
    /// The scheduler.
    pub info: &'static Info,
    /// Its tunables (`queue/iosched/`).
    pub settings: Settings,
    /// The queue's ([`QUEUE_TUNABLES`], `queue/`).
    pub queue: Settings,
}

/// Why a text does not name a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// No such scheduler.
    #[error("there is no scheduler '{name}'{hint}")]
    Unknown {
        /// The name as given.
        name: String,
        /// The nearest name, or all names.
        hint: String,
    },
    /// A setting without `=`.
    #[error("{scheduler}: '{found}' is not NAME=VALUE")]
    NotASetting {
        /// The scheduler.
        scheduler: &'static str,
        /// The text between commas.
        found: String,
    },
    /// A setting given twice.
    #[error("{scheduler}: {name} is given twice")]
    Twice {
        /// The scheduler.
        scheduler: &'static str,
        /// The tunable.
        name: String,
    },
    /// A wrong name or value.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

impl SchedulerSpec {
    /// Read `NAME[:TUNABLE=VALUE[,TUNABLE=VALUE]...]`.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub fn parse(text: &str) -> Result<SchedulerSpec, SpecError> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let Some(info) = registry::info(name.trim()) else {
            let names: Vec<_> = registry::ALL.iter().map(|info| info.name).collect();
            return Err(SpecError::Unknown { name: name.to_owned(), hint: hint(name, &names) });
        };
        let mut spec = SchedulerSpec {
            info,
            settings: info.settings(),
            queue: Settings::defaults("queue", QUEUE_TUNABLES),
        };
        let mut seen = Vec::new();
        for piece in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let Some((name, value)) = piece.split_once('=') else {
                return Err(SpecError::NotASetting { scheduler: info.name, found: piece.to_owned() });
            };
            let name = name.trim();
            if seen.contains(&name) {
                return Err(SpecError::Twice { scheduler: info.name, name: name.to_owned() });
            }
            seen.push(name);
            if QUEUE_TUNABLES.iter().any(|tunable| tunable.name == name) {
                spec.queue.set(name, value)?;
            } else {
                spec.settings.set(name, value)?;
            }
        }
        Ok(spec)
    }

    /// Every tunable's name and value, the scheduler's before the queue's.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.settings.iter().chain(self.queue.iter()).map(|(tunable, value)| (tunable.name, value))
    }

    /// Settings that differ from their defaults.
    pub fn changed(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        let all = self.settings.iter().chain(self.queue.iter());
        all.filter(|(tunable, value)| tunable.default != *value).map(|(tunable, value)| (tunable.name, value))
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
    }

    #[test]
    fn each_way_of_getting_it_wrong_is_told_in_one_line() {
        assert_eq!(refused("mq-deadlin"), "there is no scheduler 'mq-deadlin'; did you mean 'mq-deadline'?");
        assert_eq!(refused("none:x=1"), "none has no tunable 'x'; it has none");
        assert_eq!(refused("mq-deadline:fifo_batch"), "mq-deadline: 'fifo_batch' is not NAME=VALUE");
        assert_eq!(refused("mq-deadline:"), "mq-deadline: '' is not NAME=VALUE");
        assert_eq!(refused("kyber:read_lat_nsec=1,read_lat_nsec=2"), "kyber: read_lat_nsec is given twice");
        assert!(refused("mq-deadline:fifo_bach=1").contains("did you mean 'fifo_batch'?"));
        assert!(refused("mq-deadline:fifo_batch=x").contains("not a whole number"));
        assert!(refused("mq-deadline:fifo_batch=-1").contains("out of range"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "\\PC{0,40}|(none|mq-deadline|kyber)(:[a-z_]{0,12}(=[0-9-]{0,20})?,?){0,3}") {
            if let Err(error) = SchedulerSpec::parse(&text) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
}
