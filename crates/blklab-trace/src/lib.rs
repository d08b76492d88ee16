//! Recordings of I/O: readers of traces in other programs' formats, and a file format of our own.
//!
//! A reader gives [`Io`](blklab_base::recorded::Io)s in order of time, one by one: memory does not grow
//! with the file.

pub mod doctor;
pub mod edit;
mod event;
pub mod formats;
pub mod input;
pub mod likeness;
mod lines;
pub mod live;
mod matching;
pub mod notes;
mod open;
mod order;
pub mod over_time;
mod plugs;
pub mod recording;
mod rows;
pub mod served;
pub mod summary;
mod text;

pub use open::{Trace, Wanted, files_of, format_of};

use blklab_base::input_error::InputError;
use blklab_base::recorded::{Header, Io, Tables};

use notes::Notes;

/// A recording that is read.
pub trait Records {
    /// The next I/O in order of its queue time; None at the end.
    ///
    /// # Errors
    /// The file is wrong there, or cannot be read further: with its line, or the record in the reason.
    fn next_io(&mut self) -> Result<Option<Io>, InputError>;

    /// Facts about the recording; complete once the first I/O was read.
    fn header(&self) -> &Header;

    /// Names of devices and processes of the I/Os so far.
    fn tables(&self) -> &Tables;

    /// Oddities so far.
    fn notes(&self) -> &Notes;
}
