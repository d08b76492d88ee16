//! What all crates share: units, words for messages, the event queue.

pub mod event_queue;
pub mod text;
pub mod units;
