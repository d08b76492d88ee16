//! Shared by all crates: units, errors of inputs, words for messages, the event queue, recorded I/Os.

pub mod blktrace;
pub mod event_queue;
pub mod input_error;
pub mod pairs;
pub mod recorded;
pub mod ring_buffer;
pub mod rwbs;
pub mod text;
pub mod units;
