//! CFQ against what the kernel's documentation says of it (`cfq-iosched.txt` of 4.12).

mod classes;
mod cooperation;
mod drive;
mod idling;
mod properties;
mod tunables;
