//! Where I/O comes from: implementations of the engine's [`Source`](crate::engine::Source).

pub mod beside;
pub mod fio;
pub mod replay;
