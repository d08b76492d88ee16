//! Why a job file is refused: always with file and line.

use thiserror::Error;

/// A job file that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}:{line}: {problem}")]
pub struct JobError {
    /// The file, as it was named.
    pub path: String,
    /// Its line, from 1.
    pub line: u32,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// No option has this name.
    #[error("there is no option '{name}'{hint}")]
    UnknownOption {
        /// As written.
        name: String,
        /// `; did you mean ...?` or nothing.
        hint: String,
    },
    /// fio has it, the simulator does not.
    #[error("option '{name}' is not simulated ({reason}); --ignore-unsupported runs without it")]
    NotSimulated {
        /// As written.
        name: String,
        /// Why, or what to use instead.
        reason: String,
    },
    /// The option is simulated, this value of it is not.
    #[error("option '{name}': '{found}' is not simulated ({reason}); --ignore-unsupported runs without it")]
    ValueNotSimulated {
        /// As written.
        name: String,
        /// The value.
        found: String,
        /// Why, or what to use instead.
        reason: String,
    },
    /// Real fio would do more with it than to read and write the rig's files.
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
    #[error("option '{name}': found '{found}', expected {expected}")]
    BadValue {
        /// As written.
        name: String,
        /// The value.
        found: String,
        /// What it takes.
        expected: String,
    },
    /// An option without a value that needs one.
    #[error("option '{name}' needs a value: {expected}")]
    NoValue {
        /// As written.
        name: String,
        /// What it takes.
        expected: String,
    },
    /// An option of another engine than the job's.
    #[error("option '{name}' belongs to ioengine={engines}; this job has ioengine={found}")]
    WrongEngine {
        /// As written.
        name: String,
        /// The engines that have it.
        engines: String,
        /// The job's.
        found: &'static str,
    },
    /// `${NAME}` without such a variable, or without an end.
    #[error("found '${{{name}', expected ${{NAME}} with an environment variable that is set")]
    Variable {
        /// What stands behind the brace.
        name: String,
    },
    /// A variable whose value would be more than one value.
    #[error("${{{name}}}: its value holds a new line, ';', '#' or a control character")]
    UnfitVariable {
        /// Of the variable.
        name: String,
    },
    /// An option before the first section.
    #[error("option '{name}' stands outside of a [section]")]
    OutsideSection {
        /// The line.
        name: String,
    },
    /// A line that begins a section and does not end it.
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
        /// Why not.
        reason: String,
    },
    /// A section in an included file.
    #[error("found [{section}], but an included file can hold options only")]
    SectionInInclude {
        /// Its name.
        section: String,
    },
    /// A line that fio would not read in one piece.
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
    /// More than the simulator takes.
    #[error("{what}: found {found}, at most {max} are allowed")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        found: u64,
        /// The bound.
        max: u64,
    },
    /// Options that contradict each other, or jobs that do not fit the disk.
    #[error("job '{job}': {what}")]
    Job {
        /// The job's name.
        job: String,
        /// What is wrong.
        what: String,
    },
}

impl Problem {
    /// Why it was refused, if `--ignore-unsupported` runs without it.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Problem::NotSimulated { reason, .. } | Problem::ValueNotSimulated { reason, .. } => Some(reason),
            Problem::NotForReal { reason, .. } => Some(reason),
            _ => None,
        }
    }
}
