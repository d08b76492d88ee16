//! Files: where they come from, how large they are, which is next.

use crate::units::Bytes;

/// A length that may depend on the size of what it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many bytes.
    Bytes(Bytes),
    /// Percent of the whole.
    Percent(u32),
}

/// `file_service_type`: which file the next I/O goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FileService {
    /// One after another.
    #[default]
    RoundRobin,
    /// Any.
    Random,
    /// A file is finished before the next is begun.
    Sequential,
    /// Zipf over files, with this theta.
    Zipf(f64),
    /// Pareto over files, with this power.
    Pareto(f64),
    /// Bell curve over files, with this deviation in percent.
    Normal(f64),
}

/// Where a job's files come from and how large they are.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSet {
    /// `filename`, split at colons; empty if names are made up.
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
    /// `offset_align`: what an offset in percent is rounded up to; the smallest block
    /// size if `None`.
    pub offset_align: Option<Bytes>,
}

impl FileSet {
    /// Whether something is given in percent: how much that is hangs on the size of the file.
    pub fn has_shares(&self) -> bool {
        let given = [self.size, self.io_size, Some(self.offset), Some(self.offset_increment)];
        given.iter().any(|extent| matches!(extent, Some(Extent::Percent(_))))
    }
}
