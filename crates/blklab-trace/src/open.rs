//! Opening a trace: its files, its format, and what of it is wanted.

use std::path::{Path, PathBuf};

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Header, Io, Tables};
use blklab_base::units::{Nanos, SECTOR_BYTES};

use crate::Records;
use crate::formats::{self, Format};
use crate::input::Input;
use crate::notes::Notes;

/// What of a trace is wanted, and how it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The format; detected if none is given.
    pub format: Option<String>,
    /// Only I/Os of the device with this name.
    pub device: Option<String>,
    /// I/Os of one step of a coarse clock keep its time.
    pub keep_steps: bool,
    /// The trace has an event of each plug, so that an I/O without any had none ([`Flags::BARE`]).
    ///
    /// [`Flags::BARE`]: blklab_base::recorded::Flags::BARE
    pub plugs: bool,
    /// Paths of cgroups by their numbers, of records of blktrace, which have numbers only.
    pub cgroups: Vec<(u64, String)>,
}

/// A trace that is read, with its file's name in every error.
pub struct Trace {
    reader: Box<dyn Records + Send>,
    name: String,
    format: Format,
    compression: Option<&'static str>,
    files: usize,
    device: Option<String>,
    /// The first I/O: with it, the header is complete.
    first: Option<Io>,
}

/// The format of this file; `None` if it is none of the known ones, or empty.
///
/// # Errors
/// It cannot be read.
pub fn format_of(path: &Path) -> Result<Option<Format>, InputError> {
    let input =
        files_of(path).first().map(|file| Input::open(file)).transpose().map_err(|error| InputError {
            file: Some(path.display().to_string()),
            ..InputError::new(format!("cannot be read: {error}"))
        })?;
    Ok(input.and_then(|input| formats::detect(input.head())))
}

/// The files of all CPUs beside `NAME.blktrace.0`, or of `NAME` if there is no such file.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    let text = path.as_os_str().to_string_lossy();
    let stem = match text.rsplit_once(".blktrace.") {
        Some((stem, number)) if number.parse::<u32>().is_ok() => stem.to_owned(),
        _ if !path.exists() && text != "-" => text.into_owned(),
        _ => return vec![path.to_owned()],
    };
    let file = |cpu: u32| PathBuf::from(format!("{stem}.blktrace.{cpu}"));
    // CPUs that wrote nothing have an empty file; one that is off has none.
    let found: Vec<_> = (0..1 << 10).map(file).filter(|file| file.is_file()).collect();
    if found.is_empty() { vec![path.to_owned()] } else { found }
}

/// The last sector of the largest disk whose bytes can be counted.
const LAST_SECTOR: u64 = u64::MAX / SECTOR_BYTES;

/// The last time: 292 years.
const LAST_TIME: Nanos = Nanos(i64::MAX as u64);

/// The I/O, with its steps in their order: clocks of several CPUs may differ.
///
/// # Errors
/// A place or a time that no disk or clock has.
fn possible(io: Io) -> Result<Io, InputError> {
    let wrong = |what: String| Err(InputError::new(format!("record {}: {what}", io.number)));
    if io.sector.0.saturating_add(u64::from(io.sectors)) > LAST_SECTOR {
        return wrong(format!("sector {} is on no disk", io.sector.0));
    }
    let inserted = io.inserted.map(|time| time.max(io.queued));
    let before = inserted.unwrap_or(io.queued);
    let issued = io.issued.map(|time| time.max(before));
    let completed = io.completed.map(|time| time.max(issued.unwrap_or(before)));
    if completed.or(issued).unwrap_or(before) > LAST_TIME {
        return wrong("it is more than 292 years after the first".to_owned());
    }
    Ok(Io { inserted, issued, completed, ..io })
}

impl Trace {
    /// Opens the file of this path; `-` is standard input.
    ///
    /// # Errors
    /// There is no such file, its format is unknown, or its first I/O is wrong.
    pub fn open(path: &Path, wanted: &Wanted) -> Result<Trace, InputError> {
        let named = |error: InputError| InputError { file: Some(path.display().to_string()), ..error };
        let files = files_of(path);
        let mut inputs = Vec::new();
        for file in &files {
            let input = Input::open(file);
            let input = input.map_err(|error| named(InputError::new(format!("cannot be read: {error}"))))?;
            inputs.push(input);
        }
        Trace::new(inputs, wanted, path.display().to_string()).map_err(named)
    }

    /// Reads these inputs: one, or those of a trace's CPUs.
    ///
    /// # Errors
    /// As of [`Trace::open`].
    pub fn new(mut inputs: Vec<Input>, wanted: &Wanted, name: String) -> Result<Trace, InputError> {
        // CPUs without events.
        if inputs.len() > 1 && inputs.iter().any(|input| !input.head().is_empty()) {
            inputs.retain(|input| !input.head().is_empty());
        }
        let compression = inputs.first().and_then(Input::compression);
        let head = inputs.first().map(Input::head).unwrap_or_default();
        let format = match &wanted.format {
            Some(name) => formats::find(name)?,
            None if head.is_empty() => return Err(InputError::new("the file is empty")),
            None => formats::detect(head).ok_or_else(|| {
                InputError::new(
                    "the format is not known; name it, if it is one of these: blklab trace formats",
                )
            })?,
        };
        let files = inputs.len();
        let how =
            formats::Wanted { spread: !wanted.keep_steps, plugs: wanted.plugs, cgroups: &wanted.cgroups };
        let reader = formats::reader(format, inputs, how)?;
        let device = wanted.device.clone();
        let mut trace = Trace { reader, name, format, compression, files, device, first: None };
        trace.first = trace.next_of_device()?;
        Ok(trace)
    }

    fn next_of_device(&mut self) -> Result<Option<Io>, InputError> {
        loop {
            let Some(io) = self.reader.next_io()? else { return Ok(None) };
            if let Some(wanted) = &self.device
                && self.reader.tables().devices.name(io.device) != wanted
            {
                continue;
            }
            return possible(io).map(Some);
        }
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The program that compressed the file.
    pub fn compression(&self) -> Option<&'static str> {
        self.compression
    }

    /// How many files it has.
    pub fn files(&self) -> usize {
        self.files
    }

    /// The device that is wanted.
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }
}

impl Records for Trace {
    fn next_io(&mut self) -> Result<Option<Io>, InputError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        self.next_of_device().map_err(|error| InputError { file: Some(self.name.clone()), ..error })
    }

    fn header(&self) -> &Header {
        self.reader.header()
    }

    fn tables(&self) -> &Tables {
        self.reader.tables()
    }

    fn notes(&self) -> &Notes {
        self.reader.notes()
    }
}
