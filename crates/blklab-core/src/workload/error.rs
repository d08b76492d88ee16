//! Why a job file is refused: always with file and line.

use thiserror::Error;

use crate::InputError;
use crate::text::did_you_mean;

/// Why a job file cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}:{line}: {problem}")]
pub struct JobError {
    /// The file's name, as given.
    pub path: String,
    /// Its line, from 1.
    pub line: u32,
    /// The problem in that line.
    pub problem: Problem,
}

/// A problem in a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// No option has this name.
    #[error("there is no option '{name}'{}", did_you_mean(nearest.as_deref()))]
    UnknownOption {
        /// As written.
        name: String,
        /// The option that may be meant.
        nearest: Option<String>,
    },
    /// fio has it, the simulator does not.
    #[error("option '{name}' is not simulated ({reason}); --ignore-unsupported runs without it")]
    NotSimulated {
        /// As written.
        name: String,
        /// Why, or what to use instead.
        reason: String,
    },
    /// The option is simulated, but not this value.
    #[error("option '{name}': '{found}' is not simulated ({reason}); --ignore-unsupported runs without it")]
    ValueNotSimulated {
        /// As written.
        name: String,
        /// The value.
        found: String,
        /// Why, or what to use instead.
        reason: String,
    },
    /// Real fio would do more with it than read and write the rig's files.
    #[error("option '{name}'{} is refused on a real disk: {reason}; --ignore-unsupported runs without it",
        found.as_ref().map(|value| format!(": '{value}'")).unwrap_or_default())]
    NotForReal {
        /// As written.
        name: String,
        /// The value, if it has one.
        found: Option<String>,
        /// Why.
        reason: &'static str,
    },
    /// A value that the option cannot take.
    #[error("option '{name}': found '{found}', expected {expected}{}", did_you_mean(nearest.as_deref()))]
    BadValue {
        /// As written.
        name: String,
        /// The value.
        found: String,
        /// The accepted values.
        expected: String,
        /// The word that may be meant.
        nearest: Option<String>,
    },
    /// An option without a value that needs one.
    #[error("option '{name}' needs a value: {expected}")]
    NoValue {
        /// As written.
        name: String,
        /// The accepted values.
        expected: String,
    },
    /// An option of an engine that is not the job's.
    #[error("option '{name}' belongs to ioengine={engines}; this job has ioengine={found}")]
    WrongEngine {
        /// As written.
        name: String,
        /// The engines with this option.
        engines: String,
        /// The job's engine.
        found: &'static str,
    },
    /// `${NAME}` without such a variable, or without its end.
    #[error("found '${{{name}', expected ${{NAME}} with an environment variable that is set")]
    Variable {
        /// The text after the brace.
        name: String,
    },
    /// A variable with a value that would be more than one value.
    #[error("${{{name}}}: its value holds a new line, ';', '#' or a control character")]
    UnfitVariable {
        /// The variable's name.
        name: String,
    },
    /// An option before the first section.
    #[error("option '{name}' stands outside of a [section]")]
    OutsideSection {
        /// The line.
        name: String,
    },
    /// A line that begins a section but does not close the bracket.
    #[error("found '{found}', expected a section name in brackets, such as [job1]")]
    BadSection {
        /// The line.
        found: String,
    },
    /// `include` without a readable file.
    #[error("cannot include '{file}': {reason}")]
    Include {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A section in an included file.
    #[error("found [{section}], but an included file can hold options only")]
    SectionInInclude {
        /// Its name.
        section: String,
    },
    /// A line that fio would not read as a whole.
    #[error("the line is {found} bytes long, at most {max} are allowed")]
    LineTooLong {
        /// Its length.
        found: usize,
        /// fio's limit.
        max: usize,
    },
    /// A file without a job.
    #[error("the file holds no job: expected a [section] other than [global]")]
    NoJobs,
    /// More than the simulator's limit.
    #[error("{what}: found {found}, at most {max} are allowed")]
    TooMany {
        /// The thing that is counted.
        what: &'static str,
        /// The number.
        found: u64,
        /// The limit.
        max: u64,
    },
    /// Files that do not fit the disk.
    #[error("job '{job}': the files need {need_bytes} bytes, the disk has {room_bytes}")]
    NoRoom {
        /// The job's name.
        job: String,
        /// The size of its files and of all files before them.
        need_bytes: u64,
        /// The size of the disk.
        room_bytes: u64,
    },
    /// Options that contradict each other, or jobs that do not fit the machine.
    #[error("job '{job}': {what}")]
    Job {
        /// The job's name.
        job: String,
        /// The problem.
        what: String,
    },
}

impl Problem {
    /// The reason for the refusal, if `--ignore-unsupported` runs without it.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Problem::NotSimulated { reason, .. } | Problem::ValueNotSimulated { reason, .. } => Some(reason),
            Problem::NotForReal { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

impl From<JobError> for InputError {
    fn from(JobError { path, line, problem }: JobError) -> InputError {
        let told = InputError {
            file: Some(path),
            line: Some(line as usize),
            ..InputError::new(problem.to_string())
        };
        match problem {
            Problem::UnknownOption { name, nearest } => told.option(name).nearest(nearest),
            Problem::NotSimulated { name, .. } | Problem::OutsideSection { name } => told.option(name),
            Problem::ValueNotSimulated { name, found, .. } => told.option(name).found(found),
            Problem::NotForReal { name, found, .. } => InputError { found, ..told.option(name) },
            Problem::BadValue { name, found, expected, nearest } => {
                told.option(name).found(found).expected(expected).nearest(nearest)
            }
            Problem::NoValue { name, expected } => told.option(name).expected(expected),
            Problem::WrongEngine { name, engines, found } => told.option(name).found(found).expected(engines),
            Problem::BadSection { found } => told.found(found).expected("[NAME]"),
            Problem::SectionInInclude { section } => told.found(format!("[{section}]")),
            Problem::LineTooLong { found, max } => {
                told.found(found.to_string()).expected(format!("at most {max}"))
            }
            Problem::TooMany { found, max, .. } => {
                told.found(found.to_string()).expected(format!("at most {max}"))
            }
            Problem::NoRoom { need_bytes, room_bytes, .. } => {
                told.option("size").found(need_bytes.to_string()).expected(format!("at most {room_bytes}"))
            }
            Problem::Include { .. } => told.option("include"),
            Problem::Variable { .. }
            | Problem::UnfitVariable { .. }
            | Problem::NoJobs
            | Problem::Job { .. } => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::fio::jobfile::{self, Bare};

    #[test]
    fn an_error_is_also_a_value_with_the_same_line() {
        let mut machine = Bare { memory_mib: 8192, cpus: 4 };
        for (text, option, found, nearest) in [
            ("[a]\niodepht=4\n", Some("iodepht"), None, Some("iodepth")),
            ("[a]\nrw=raed\n", Some("rw"), Some("raed"), Some("read")),
            ("[a]\niodepth=x\n", Some("iodepth"), Some("x"), None),
            ("[a]\nverify=md5\n", Some("verify"), None, None),
            ("[a]\n[\n", None, Some("["), None),
        ] {
            let error = jobfile::parse(text, "a.fio", &mut machine, Default::default()).unwrap_err();
            let told = InputError::from(error.clone());
            assert_eq!(told.to_string(), error.to_string());
            assert_eq!((told.file.as_deref(), told.line), (Some("a.fio"), Some(2)), "{told}");
            let fields = (told.option.as_deref(), told.found.as_deref(), told.nearest.as_deref());
            assert_eq!(fields, (option, found, nearest), "{told}");
        }
    }
}
