//! Where I/O comes from: implementations of the engine's [`Source`](crate::engine::Source).

pub mod arrivals;
pub mod fio;
