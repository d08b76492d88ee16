//! Reading a job file: lines, sections, includes, variables.
//!
//! Follows fio 3.33's `__parse_jobs_ini()`: a `;` or `#` ends a line anywhere in it, every section
//! with a name that begins with `global` sets defaults for the sections after it, `include FILE`
//! appears inside a section and adds options only, `${NAME}` is an environment variable, and
//! `$pagesize`, `$mb_memory`, `$ncpus` are numbers for calculations. Forms that fio accepts
//! leniently (`[job` without an end, values with trailing text) are refused here.

use std::sync::Arc;

use super::lines::{Line, is_global};
use super::options::real::{self, Handing};
use super::options::{self, Draft, JobOption, Status};
use super::value::{self, KbBase};
use crate::workload::error::{JobError, Problem};
use crate::workload::spec::{Engine, Idle, JobFile};

/// fio's `OPT_LEN_MAX`.
const LINE_BYTES_MAX: usize = 8192;

/// The maximum depth of nested includes.
const INCLUDE_DEPTH_MAX: usize = 16;

/// The maximum of lines in a job file with all its includes: files that include each other twice
/// double at each level.
const LINES_MAX: u64 = 1 << 20;

/// fio's limit on the length of a section's name.
const SECTION_BYTES_MAX: usize = 255;

/// What a job file may read from its machine.
pub trait Resolver {
    /// The environment variable of that name.
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of an included file. Tries the path as given and, if that fails, the path relative
    /// to the including file, as fio does.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn include(&mut self, path: &str) -> Result<String, String>;
    /// `$pagesize`, bytes.
    fn page_size(&self) -> u64 {
        4096
    }
    /// `$mb_memory`, MiB.
    fn memory_mib(&self) -> u64;
    /// `$ncpus`.
    fn cpus(&self) -> u64;
}

/// A machine that gives a job file only these numbers: no variables, no files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bare {
    /// `$mb_memory`, MiB.
    pub memory_mib: u64,
    /// `$ncpus`.
    pub cpus: u64,
}

impl Resolver for Bare {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn include(&mut self, _: &str) -> Result<String, String> {
        Err("this machine has no files".to_owned())
    }

    fn memory_mib(&self) -> u64 {
        self.memory_mib
    }

    fn cpus(&self) -> u64 {
        self.cpus
    }
}

/// Options for reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// Collects options that are not simulated in [`JobFile::ignored`] instead of refusing them.
    pub ignore_unsupported: bool,
    /// Reads it for real fio on a real disk: keeps only options that [`real::handing`] allows.
    pub real: bool,
}

/// Reads the job file `text`; `path` is its name in messages and the base for includes.
///
/// # Errors
/// The first line that cannot be run, with file and line.
pub fn parse(
    text: &str,
    path: &str,
    resolver: &mut dyn Resolver,
    options: ParseOptions,
) -> Result<JobFile, JobError> {
    let mut reader = Reader {
        resolver,
        options,
        file: JobFile { path: path.to_owned(), ..JobFile::default() },
        global: Draft::default(),
        group: 0,
        group_has_jobs: false,
        section: None,
        lines: 0,
        including: Vec::new(),
    };
    reader.read(text, path)?;
    reader.end_section(path)?;
    if reader.file.jobs.is_empty() {
        let line = text.lines().count().max(1) as u32;
        return Err(JobError { path: path.to_owned(), line, problem: Problem::NoJobs });
    }
    Ok(reader.file)
}

/// One `name=value` and its line.
struct Entry {
    path: String,
    line: u32,
    name: String,
    value: Option<String>,
}

struct Section {
    name: String,
    line: u32,
    entries: Vec<Entry>,
}

struct Reader<'a> {
    resolver: &'a mut dyn Resolver,
    options: ParseOptions,
    file: JobFile,
    global: Draft,
    group: u32,
    group_has_jobs: bool,
    section: Option<Section>,
    lines: u64,
    including: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, text: &str, path: &str) -> Result<(), JobError> {
        for (index, line) in text.split('\n').enumerate() {
            let number = index as u32 + 1;
            let at = |problem| JobError { path: path.to_owned(), line: number, problem };
            self.lines += 1;
            if self.lines > LINES_MAX {
                let (found, max) = (self.lines, LINES_MAX);
                return Err(at(Problem::TooMany { what: "lines with all includes", found, max }));
            }
            if line.len() > LINE_BYTES_MAX {
                return Err(at(Problem::LineTooLong { found: line.len(), max: LINE_BYTES_MAX }));
            }
            let line = match Line::of(line) {
                Line::Empty => continue,
                Line::Section(line) => {
                    let name = section_name(line).map_err(at)?;
                    if !self.including.is_empty() {
                        return Err(at(Problem::SectionInInclude { section: name.to_owned() }));
                    }
                    self.end_section(path)?;
                    self.section = Some(Section { name: name.to_owned(), line: number, entries: Vec::new() });
                    continue;
                }
                other if self.section.is_none() => {
                    return Err(at(Problem::OutsideSection { name: other.name().to_owned() }));
                }
                Line::Include(file) => {
                    self.include(file, path, number)?;
                    continue;
                }
                Line::Option(line) => line,
            };
            let line = self.substitute(line).map_err(at)?;
            let (name, value) = match line.split_once('=') {
                Some((name, value)) => (name.trim().to_owned(), Some(value.trim().to_owned())),
                None => (line.clone(), None),
            };
            if let Some(section) = &mut self.section {
                section.entries.push(Entry { path: path.to_owned(), line: number, name, value });
            }
        }
        Ok(())
    }

    fn include(&mut self, file: &str, from: &str, line: u32) -> Result<(), JobError> {
        let refuse = |reason: String| JobError {
            path: from.to_owned(),
            line,
            problem: Problem::Include { file: file.to_owned(), reason },
        };
        if self.including.len() >= INCLUDE_DEPTH_MAX {
            return Err(refuse(format!("more than {INCLUDE_DEPTH_MAX} files deep")));
        }
        let beside = match from.rfind('/') {
            Some(slash) if !file.starts_with('/') => format!("{}{file}", &from[..=slash]),
            _ => file.to_owned(),
        };
        let (path, text) = match self.resolver.include(file) {
            Ok(text) => (file.to_owned(), text),
            Err(reason) if beside == file => return Err(refuse(reason)),
            Err(_) => {
                let text = self.resolver.include(&beside).map_err(refuse)?;
                (beside, text)
            }
        };
        if self.including.contains(&path) || path == self.file.path {
            return Err(refuse("it includes itself".to_owned()));
        }
        self.including.push(path.clone());
        self.read(&text, &path)?;
        self.including.pop();
        Ok(())
    }

    /// Replaces `${NAME}` and fio's keywords; a value with a keyword may be a calculation.
    fn substitute(&self, line: &str) -> Result<String, Problem> {
        let mut out = String::new();
        let mut rest = line;
        while let Some(start) = rest.find("${") {
            out.push_str(&rest[..start]);
            let inner = &rest[start + 2..];
            let unknown = |name: &str| Problem::Variable { name: name.to_owned() };
            let end = inner.find('}').ok_or_else(|| unknown(inner))?;
            let name = &inner[..end];
            let value = self.resolver.variable(name).ok_or_else(|| unknown(&inner[..=end]))?;
            // A line break in it would start another option, a `;` or `#` would end this one.
            if value.contains(|c: char| c.is_control() || c == ';' || c == '#') {
                return Err(Problem::UnfitVariable { name: name.to_owned() });
            }
            out.push_str(&value);
            rest = &inner[end + 1..];
        }
        out.push_str(rest);
        let keywords = [
            ("$pagesize", self.resolver.page_size()),
            ("$mb_memory", self.resolver.memory_mib()),
            ("$ncpus", self.resolver.cpus()),
        ];
        if !keywords.iter().any(|(word, _)| out.contains(word)) {
            return Ok(out);
        }
        for (word, number) in keywords {
            out = out.replace(word, &number.to_string());
        }
        let calculated = out.split_once('=').and_then(|(name, value)| {
            let number = value::expression(value, KbBase::Compatible)?;
            value.contains(['+', '-', '*', '/']).then(|| format!("{name}={number}"))
        });
        Ok(calculated.unwrap_or(out))
    }

    /// The current section is complete: applies its options over the defaults.
    fn end_section(&mut self, path: &str) -> Result<(), JobError> {
        let Some(section) = self.section.take() else { return Ok(()) };
        let is_global = is_global(&section.name);
        let mut draft = self.global.clone();
        // Options that change the meaning of others come first, wherever they are.
        let (first, later): (Vec<_>, Vec<_>) =
            section.entries.iter().partition(|e| e.name == "kb_base" || e.name == "ioengine");
        let mut left_out = Vec::new();
        for entry in first.into_iter().chain(later) {
            if !self.apply(&mut draft, entry)? {
                left_out.push(entry.name.as_str());
            }
        }
        let kept = section.entries.iter().filter(|e| !left_out.contains(&e.name.as_str()));
        let given = kept.map(|e| (e.name.clone(), e.value.clone().unwrap_or_default())).collect();
        if is_global {
            self.global = draft;
            lay_over(&mut self.file.global, given);
            return Ok(());
        }
        let mut all = self.file.global.clone();
        lay_over(&mut all, given);
        if draft.starts_group() && self.group_has_jobs {
            self.group += 1;
        }
        self.group_has_jobs = true;
        let job = draft.settle(&section.name, section.line, self.group, all).map_err(|problem| JobError {
            path: path.to_owned(),
            line: section.line,
            problem,
        })?;
        self.file.jobs.push(Arc::new(job));
        Ok(())
    }

    /// Applies one option to the draft; false if it was left out.
    fn apply(&mut self, draft: &mut Draft, entry: &Entry) -> Result<bool, JobError> {
        let at = |problem| JobError { path: entry.path.clone(), line: entry.line, problem };
        let idle = |why: &str| Idle {
            path: entry.path.clone(),
            line: entry.line,
            name: entry.name.clone(),
            value: entry.value.clone(),
            why: why.to_owned(),
        };
        let Some(option) = options::find(&entry.name) else {
            return Err(at(options::unknown(&entry.name)));
        };
        if !option.engines.is_empty() && !option.engines.contains(&draft.engine()) {
            let engines: Vec<_> = option.engines.iter().map(|e| Engine::name(*e)).collect();
            if draft.is_engine_left_out() {
                self.file.ignored.push(idle(&format!("it belongs to ioengine={}", engines.join(" or "))));
                return Ok(false);
            }
            return Err(at(Problem::WrongEngine {
                name: entry.name.clone(),
                engines: engines.join(" or "),
                found: draft.engine().name(),
            }));
        }
        match self.lay(option, draft, entry) {
            Ok(None) => {
                if let Status::NoEffect(why) = option.status {
                    self.file.without_effect.push(idle(why));
                }
                Ok(true)
            }
            Ok(Some(why)) => {
                self.file.ignored.push(idle(why));
                Ok(false)
            }
            Err(problem) => {
                let Some(reason) = problem.refusal().filter(|_| self.options.ignore_unsupported) else {
                    return Err(at(problem));
                };
                self.file.ignored.push(idle(reason));
                if option.name == "ioengine" {
                    draft.leave_engine_out();
                }
                Ok(false)
            }
        }
    }

    /// Applies one option to the draft; returns the reason if real fio does not need it.
    fn lay(
        &self,
        option: &JobOption,
        draft: &mut Draft,
        entry: &Entry,
    ) -> Result<Option<&'static str>, Problem> {
        let (name, value) = (entry.name.as_str(), entry.value.as_deref());
        // An option that neither fio nor the simulator takes has its own reason.
        let is_out = matches!(option.status, Status::NotSimulated(_) | Status::OtherEngine(_));
        if !self.options.real || is_out {
            return option.apply(draft, name, value).map(|()| None);
        }
        match real::handing(option.name, value.unwrap_or("")) {
            Handing::Refused(reason) => {
                Err(Problem::NotForReal { name: name.to_owned(), found: value.map(str::to_owned), reason })
            }
            // Its value is checked nevertheless.
            Handing::LeftOut(why) => option.apply(&mut draft.clone(), name, value).map(|()| Some(why)),
            Handing::Handed(_) | Handing::Rewritten(_) => {
                option.apply_real(draft, name, value).map(|()| None)
            }
        }
    }
}

/// `[name]`.
fn section_name(line: &str) -> Result<&str, Problem> {
    let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match name {
        Some(name) if !name.is_empty() && name.len() <= SECTION_BYTES_MAX => Ok(name),
        _ => Err(Problem::BadSection { found: line.to_owned() }),
    }
}

/// Later values replace earlier ones of the same name.
fn lay_over(given: &mut Vec<(String, String)>, more: Vec<(String, String)>) {
    for (name, value) in more {
        match given.iter_mut().find(|(n, _)| *n == name) {
            Some(entry) => entry.1 = value,
            None => given.push((name, value)),
        }
    }
}
