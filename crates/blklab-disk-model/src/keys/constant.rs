//! The keys of disks with one service time.

use super::Absent::{Default, Error};
use super::Allowed::{Flag, Number};
use super::{
    CAPACITY, HW_QUEUES, KIND, Key, LOGICAL, MAX_HW, NAME, PHYSICAL, QUEUE_DEPTH, SUMMARY, TRANSPORT, key,
};

/// Keys of `kind = "constant"`.
pub static CONSTANT_KEYS: &[Key] = &[
    KIND,
    NAME,
    SUMMARY,
    TRANSPORT,
    CAPACITY,
    LOGICAL,
    PHYSICAL,
    QUEUE_DEPTH,
    HW_QUEUES,
    MAX_HW,
    key(
        "rotational",
        "",
        Flag,
        Default("true"),
        "the kernel treats it as a hard disk: schedulers idle for it",
    ),
    key(
        "service_us",
        "us",
        Number(0.001, 60_000_000.0),
        Error,
        "service time of each command; queue_depth of them are served at once",
    ),
];
