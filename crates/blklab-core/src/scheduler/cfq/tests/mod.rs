//! CFQ compared with the kernel's documentation (`cfq-iosched.txt` of 4.12).

mod classes;
mod cooperation;
mod drive;
mod idling;
mod properties;
mod tunables;
