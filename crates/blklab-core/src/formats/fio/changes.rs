//! A job file with some of its options changed: `option=value,...`, as users write them behind a
//! job's name.
//!
//! An option that one section sets is changed there, under any of its names; one that no section sets is
//! set in `[global]`, for all jobs. The result is a job file like any other.

use std::ops::Range;

use blklab_base::pairs::pairs_with_commas;
use blklab_base::text::shown;

use super::lines::{Line, is_global};
use super::options;
use crate::InputError;
use crate::workload::spec::JobFile;

/// The text of a job file.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// Its path in messages.
    pub path: &'a str,
    /// The text.
    pub text: &'a str,
    /// What was read of it, with the files that it includes.
    pub file: &'a JobFile,
}

/// The text with these options.
///
/// # Errors
/// `changes` are no options with values, a value cannot stand in a line, or the option is set where it
/// cannot be changed: in several sections, or in an included file.
pub fn changed(job: Written<'_>, changes: &str) -> Result<String, InputError> {
    let pairs = pairs_with_commas(changes).map_err(|error| error.of(job.name, "option=value"))?;
    let mut text = job.text.to_owned();
    for (number, (option, value)) in pairs.iter().enumerate() {
        if !option.chars().all(|c| c.is_alphanumeric() || c == '_') {
            let found = format!("{option}={value}");
            return Err(blklab_base::pairs::PairError::NotAPair(&found).of(job.name, "option=value"));
        }
        if value.contains(|c: char| c.is_control() || matches!(c, ';' | '#')) {
            let found = shown(value);
            let reason = format!("{}: {option}: '{found}' cannot stand in a job file's line", job.name);
            return Err(InputError::new(reason).option(*option).found(found));
        }
        if pairs[..number].iter().any(|(other, _)| is_same(other, option)) {
            let reason = format!("{}: '{option}' is given twice", job.name);
            return Err(InputError::new(reason).option(*option));
        }
        text = with(&text, job, option, value)?;
    }
    Ok(text)
}

/// Whether both are names of one option.
fn is_same(one: &str, other: &str) -> bool {
    one == other
        || options::find(one).is_some_and(|option| option.name == other || option.aliases.contains(&other))
}

fn with(text: &str, job: Written<'_>, option: &str, value: &str) -> Result<String, InputError> {
    let cannot = |why: &str| {
        Err(InputError::new(format!("{}: '{option}' is set in {why}; change a copy", job.name))
            .option(option))
    };
    let mut places: Vec<(usize, Range<usize>)> = Vec::new();
    let (mut section, mut first) = (0, None);
    for (line, range) in lines(text) {
        match line {
            Line::Section(name) => {
                section += 1;
                first.get_or_insert((name, range));
            }
            Line::Option(_) if is_same(option, line.name()) => places.push((section, range)),
            _ => {}
        }
    }
    let setting = format!("{option}={value}");
    if let Some((in_section, range)) = places.last() {
        if places.iter().any(|(other, _)| other != in_section) {
            return cannot(&format!("several sections of {}", job.path));
        }
        return Ok(replaced(text, range.clone(), &setting));
    }
    let given =
        |name: &str| job.file.jobs.iter().any(|job| job.given.iter().any(|(other, _)| is_same(name, other)));
    if given(option) {
        return cannot(&format!("a file that {} includes", job.path));
    }
    let Some((name, range)) = first else {
        return Err(InputError::new(format!("{}: has no section", job.path)));
    };
    // Before all jobs: in a new section, if the file does not begin with the one of defaults.
    Ok(if is_global(name.trim_start_matches('[')) {
        replaced(text, range.end..range.end, &format!("\n{setting}"))
    } else {
        replaced(text, range.start..range.start, &format!("[global]\n{setting}\n\n"))
    })
}

/// Each line, and where it stands.
fn lines(text: &str) -> impl Iterator<Item = (Line<'_>, Range<usize>)> {
    let mut from = 0;
    text.split('\n').map(move |line| {
        let range = from..from + line.len();
        from = range.end + 1;
        (Line::of(line), range)
    })
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::jobfile::{self, Bare};
    use super::*;

    fn read(text: &str) -> JobFile {
        let mut nothing = Bare { memory_mib: 0, cpus: 0 };
        jobfile::parse(text, "job.fio", &mut nothing, Default::default()).expect("a good job")
    }

    fn of(text: &str, changes: &str) -> Result<String, String> {
        let written = Written { name: "job", path: "job.fio", text, file: &read(text) };
        changed(written, changes).map_err(|error| error.to_string())
    }

    const TWO: &str = "; two jobs\n[a]\nrw=read\nsize=1m # each\n[b]\nsize=2m\n";

    #[test]
    fn an_option_that_is_set_is_changed_in_its_place_under_any_of_its_names() {
        let text = "[a]\nblocksize=4k\nsize=1m\n";
        assert_eq!(of(text, "bs=8k"), Ok("[a]\nbs=8k\nsize=1m\n".to_owned()));
    }

    #[test]
    fn an_option_that_is_not_set_becomes_a_default_of_all_jobs() {
        let expected = "; two jobs\n[global]\nbs=8k,16k\n\n[a]\nrw=read\nsize=1m # each\n[b]\nsize=2m\n";
        assert_eq!(of(TWO, "bs=8k,16k"), Ok(expected.to_owned()));
        let text = "[global]\ndirect=1\n[a]\nsize=1m\n";
        assert_eq!(of(text, "bs=8k"), Ok("[global]\nbs=8k\ndirect=1\n[a]\nsize=1m\n".to_owned()));
    }

    #[test]
    fn an_option_that_cannot_be_changed_is_refused() {
        let several = "job: 'size' is set in several sections of job.fio; change a copy";
        assert_eq!(of(TWO, "size=4m"), Err(several.to_owned()));
        assert_eq!(of(TWO, "bs=4k,blocksize=8k"), Err("job: 'blocksize' is given twice".to_owned()));
        assert_eq!(of(TWO, "bs=4k;rm"), Err("job: bs: '4k;rm' cannot stand in a job file's line".to_owned()));
        assert_eq!(
            of(TWO, "b s=4k"),
            Err("job: expected option=value behind ':', found 'b s=4k'".to_owned())
        );
    }

    proptest! {
        /// The changed option has the value in every job that had it, or in all; the others are the same.
        #[test]
        fn only_the_changed_option_changes(
            in_global in any::<bool>(),
            jobs in proptest::collection::vec((any::<bool>(), 1_u64..9), 1..4),
            kib in 1_u64..64,
        ) {
            let mut text = if in_global { "[global]\nbs=1k\n".to_owned() } else { String::new() };
            for (number, (seeded, mib)) in jobs.iter().enumerate() {
                let seed = if *seeded { "randseed=7\n" } else { "" };
                text += &format!("[j{number}]\n{seed}size={mib}m\n");
            }
            let before = read(&text);
            let after = read(&of(&text, &format!("blocksize={}", kib << 10)).expect("it can be changed"));
            prop_assert_eq!(before.jobs.len(), after.jobs.len());
            for (one, other) in before.jobs.iter().zip(&after.jobs) {
                let rest = |given: &[(String, String)]| {
                    let rest = given.iter().filter(|(name, _)| !is_same("bs", name)).cloned();
                    rest.collect::<Vec<_>>()
                };
                prop_assert_eq!(rest(&one.given), rest(&other.given));
                let value = other.given.iter().find(|(name, _)| is_same("bs", name));
                prop_assert_eq!(value.map(|(_, value)| value.clone()), Some((kib << 10).to_string()));
            }
        }
    }
}
