//! Shared by all crates: units, errors of inputs, words for messages, the event queue.

pub mod event_queue;
pub mod input_error;
pub mod text;
pub mod units;
