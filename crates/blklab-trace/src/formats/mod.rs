//! Formats of traces, one module each, and their detection.

pub mod binary;
pub mod blkparse;
pub mod blktrace;
pub mod delimited;
pub mod ftrace;
pub mod hfplayer;
pub mod iolog;
pub mod sectors;

use blklab_base::input_error::InputError;
use blklab_base::text::{did_you_mean, nearest};

use crate::Records;
use crate::input::Input;
use crate::lines::Lines;
use crate::matching::{Matched, Shared};
use crate::recording::{self, Recording};
use crate::rows::Arrivals;
use delimited::{Delimited, KNOWN};

/// A format, as of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
}

const OWN: Format = Format { name: "blklab", about: "a recording of blklab: a stream of Arrow with zstd" };
const BLKTRACE: Format = Format {
    name: "blktrace",
    about: "binary records of blktrace, versions 7 and 8; NAME.blktrace.0 brings the files of the other CPUs",
};
const BLKPARSE: Format = Format {
    name: "blkparse",
    about: "text of blkparse: its default, and -f with device, time, action, RWBS",
};
const FTRACE: Format =
    Format { name: "ftrace", about: "block events as text: tracefs, trace-cmd report, perf script" };
const IOLOG: Format = Format { name: "iolog", about: "fio's iolog, versions 2 and 3" };
const VSCSI: Format =
    Format { name: "vscsi", about: "VMware's vscsiStats, versions 1 and 2, as of CloudPhysics" };
const ORACLE: Format =
    Format { name: "oracle-general", about: "libCacheSim's oracleGeneral: no operation, whole seconds" };
const HFPLAYER: Format =
    Format { name: "hfplayer", about: "hfplayer's raw dump of arrivals and completions" };
const CSV: Format =
    Format { name: "csv", about: "text with a line of names: time, op, offset or sector, size or sectors" };
const SECTORS: Format =
    Format { name: "sectors", about: "a list of sectors: no times, lengths or operations" };

/// All formats, in the order of lists.
pub fn all() -> Vec<Format> {
    let first = [OWN, BLKTRACE, BLKPARSE, FTRACE, IOLOG];
    let last = [HFPLAYER, VSCSI, ORACLE, CSV, SECTORS];
    let known = KNOWN.iter().map(|known| Format { name: known.name, about: known.about });
    first.into_iter().chain(known).chain(last).collect()
}

/// The format of this name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<Format, InputError> {
    let formats = all();
    if let Some(format) = formats.iter().find(|format| format.name == name) {
        return Ok(*format);
    }
    let names: Vec<_> = formats.iter().map(|format| format.name).collect();
    let near = nearest(name, &names);
    let name = blklab_base::text::shown(name);
    let hint = if near.is_some() { did_you_mean(near) } else { format!("; there are: {}", names.join(", ")) };
    Err(InputError::new(format!("no format '{name}'{hint}")).option("format").found(name).nearest(near))
}

/// Lines of text by which a format is detected.
const LINES_LOOKED_AT: usize = 200;

/// The format of a file that begins like this; None if it is none of them.
pub fn detect(head: &[u8]) -> Option<Format> {
    if recording::is_ours(head) {
        return Some(OWN);
    }
    if blktrace::is_ours(head) {
        return Some(BLKTRACE);
    }
    let is_text = !head.iter().take(4096).any(|byte| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r'));
    if !is_text {
        return match binary::detect(head)? {
            binary::Form::OracleGeneral => Some(ORACLE),
            _ => Some(VSCSI),
        };
    }
    let mut lines: Vec<_> = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    // The last line may be cut.
    if lines.len() > 1 {
        lines.pop();
    }
    lines.retain(|line| !line.is_empty());
    lines.truncate(LINES_LOOKED_AT);
    let first = lines.first()?;
    if iolog::version(first).is_some() {
        return Some(IOLOG);
    }
    if hfplayer::is_ours(head) {
        return Some(HFPLAYER);
    }
    if let Some(known) = delimited::of_names(first) {
        return find(known.name).ok();
    }
    if delimited::named(first).is_some() {
        return Some(CSV);
    }
    if lines.iter().any(|line| ftrace::is_ours(line)) {
        return Some(FTRACE);
    }
    if lines.iter().any(|line| line.starts_with(b"start ;")) {
        return find("blkreplay").ok();
    }
    let by_row = lines.iter().find_map(|line| row(line))?;
    (by_row != SECTORS || lines.iter().all(|line| row(line) == Some(SECTORS))).then_some(by_row)
}

/// The format of a row without a line of names before it.
fn row(line: &[u8]) -> Option<Format> {
    use crate::text::{number, trimmed, words};

    let fields = |sign: u8| line.split(move |byte| *byte == sign).map(trimmed).collect::<Vec<_>>();
    let whole = |field: &&[u8]| number(field).is_some();
    let decimal = |field: &[u8]| {
        let point = field.iter().position(|byte| *byte == b'.');
        point.is_some_and(|point| number(&field[..point]).is_some() && number(&field[point + 1..]).is_some())
    };
    let word = |field: &[u8]| delimited::operation(field).is_some() && number(field).is_none();
    let comma = fields(b',');
    let name = match comma.as_slice() {
        [time, _, disk, op, offset, bytes, response]
            if [time, disk, offset, bytes, response].into_iter().all(whole) && word(op) =>
        {
            "msr"
        }
        [time, response, op, lun, offset, bytes]
            if decimal(time)
                && (decimal(response) || whole(response))
                && (word(op) || op.is_empty())
                && [lun, offset, bytes].into_iter().all(whole) =>
        {
            "systor"
        }
        [device, op, offset, bytes, time]
            if whole(device) && word(op) && [offset, bytes, time].into_iter().all(whole) =>
        {
            "alibaba"
        }
        [time, offset, size, b"0" | b"1", volume] if [time, offset, size, volume].into_iter().all(whole) => {
            "tencent"
        }
        [_, time, op, offset, bytes] if decimal(time) && word(op) && whole(offset) && whole(bytes) => {
            "k5cloud"
        }
        _ => "",
    };
    if let Ok(format) = find(name) {
        return Some(format);
    }
    if let [time, sector, sectors, op, ..] = fields(b';').as_slice()
        && (decimal(time) || whole(time))
        && whole(sector)
        && whole(sectors)
        && word(op)
    {
        return find("blkreplay").ok();
    }
    let blanks: Vec<_> = words(line).collect();
    match blanks.as_slice() {
        [only] if whole(only) => Some(SECTORS),
        [time, device, sector, sectors, b"0" | b"1"]
            if [time, device, sector, sectors].into_iter().all(whole) =>
        {
            find("mqsim").ok()
        }
        [time, pid, _, sector, sectors, op, major, minor, _]
            if [time, pid, sector, sectors, major, minor].into_iter().all(whole) && word(op) =>
        {
            find("fiu").ok()
        }
        _ if blkparse::is_ours(line) => Some(BLKPARSE),
        _ => None,
    }
}

/// What a reading wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// I/Os of one step of a coarse clock are spread over it.
    pub spread: bool,
    /// Records of blktrace have those of all plugs.
    pub plugs: bool,
    /// Paths of cgroups by their numbers, of records of blktrace.
    pub cgroups: &'a [(u64, String)],
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Wanted { spread: true, plugs: false, cgroups: &[] }
    }
}

/// The reader of a format. Only blktrace has several inputs, its CPUs' files.
///
/// # Errors
/// The file does not begin as its format does.
pub fn reader(
    format: Format,
    mut inputs: Vec<Input>,
    wanted: Wanted<'_>,
) -> Result<Box<dyn Records + Send>, InputError> {
    let mut shared = Shared::default();
    if format == BLKTRACE {
        for (number, path) in wanted.cgroups {
            shared.tables.cgroups.set(*number, path);
        }
        let matched = Matched::new(blktrace::Blktrace::new(inputs), shared);
        return Ok(Box::new(if wanted.plugs { matched.with_plugs() } else { matched }));
    }
    let Some(input) = inputs.pop() else { return Err(InputError::new("no file")) };
    let spread = wanted.spread;
    if format == OWN {
        return Ok(Box::new(Recording::new(input)?));
    }
    if format == VSCSI || format == ORACLE {
        let form = match binary::detect(input.head()) {
            Some(form) if (form == binary::Form::OracleGeneral) == (format == ORACLE) => form,
            _ if format == ORACLE => binary::Form::OracleGeneral,
            _ => return Err(InputError::new("record 1: vscsi: no record of version 1 or 2")),
        };
        let rows = binary::Binary::new(input, form, &mut shared);
        return Ok(Box::new(Arrivals::new(rows, shared, spread)));
    }
    let csv = (format == CSV)
        .then(|| {
            let first = input.head().split(|byte| *byte == b'\n').next().unwrap_or_default();
            delimited::named(first.trim_ascii_end()).ok_or_else(|| {
                let found = crate::text::quoted(first);
                InputError {
                    line: Some(1),
                    ..InputError::new(format!(
                        "csv: found '{found}'; expected names of columns: time, offset or sector, size or sectors"
                    ))
                }
            })
        })
        .transpose()?;
    let lines = Lines::new(input);
    Ok(match format.name {
        "blkparse" => {
            let events = blkparse::Blkparse::new(lines, &mut shared);
            Box::new(Matched::new(events, shared))
        }
        "ftrace" => {
            let events = ftrace::Ftrace::new(lines, &mut shared);
            Box::new(Matched::new(events, shared))
        }
        "iolog" => {
            let rows = iolog::Iolog::new(lines, &mut shared)?;
            // Where a log has no wait the job went on at once.
            Box::new(Arrivals::new(rows, shared, false))
        }
        "hfplayer" => {
            let rows = hfplayer::Hfplayer::new(lines, &mut shared)?;
            Box::new(Arrivals::new(rows, shared, spread))
        }
        "sectors" => {
            let rows = sectors::Sectors::new(lines, &mut shared);
            Box::new(Arrivals::new(rows, shared, false))
        }
        name => {
            let known = KNOWN.iter().find(|known| known.name == name).map(delimited::Known::layout);
            let Some(layout) = csv.or(known) else { return Err(InputError::new("no such format")) };
            let rows = Delimited::new(lines, layout, &mut shared);
            Box::new(Arrivals::new(rows, shared, spread))
        }
    })
}
