//! Files: names, sizes and the choice of the next file.

use crate::units::Bytes;

/// A length that may depend on the size of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A number of bytes.
    Bytes(Bytes),
    /// Percent of the whole.
    Percent(u32),
}

/// `file_service_type`: the choice of the file for the next I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FileService {
    /// One after another.
    #[default]
    RoundRobin,
    /// Random.
    Random,
    /// A file is finished before the next is started.
    Sequential,
    /// Zipf over files, with this theta.
    Zipf(f64),
    /// Pareto over files, with this power.
    Pareto(f64),
    /// Bell curve over files, with this deviation in percent.
    Normal(f64),
}

/// The names and sizes of a job's files.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSet {
    /// `filename`, split at colons; empty if names are generated.
    pub names: Vec<String>,
    /// `directory`, split at colons; clones take turns.
    pub directories: Vec<String>,
    /// `filename_format`.
    pub name_format: String,
    /// `nrfiles`.
    pub count: u32,
    /// `file_service_type`.
    pub service: FileService,
    /// I/Os before another file is chosen (`file_service_type=random:N`).
    pub ios_per_file: u32,
    /// `size`.
    pub size: Option<Extent>,
    /// `io_size`: percent of `size`.
    pub io_size: Option<Extent>,
    /// `filesize`, smallest and largest.
    pub file_size: Option<(Bytes, Bytes)>,
    /// `offset`.
    pub offset: Extent,
    /// `offset_increment`, added once per clone.
    pub offset_increment: Extent,
    /// `offset_align`: an offset in percent is rounded up to a multiple of this; the smallest block
    /// size if `None`.
    pub offset_align: Option<Bytes>,
}

impl FileSet {
    /// Whether a value is in percent and so depends on the size of the file.
    pub fn has_shares(&self) -> bool {
        let given = [self.size, self.io_size, Some(self.offset), Some(self.offset_increment)];
        given.iter().any(|extent| matches!(extent, Some(Extent::Percent(_))))
    }
}
