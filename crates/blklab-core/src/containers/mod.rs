//! Data structures for requests and queues in schedulers. Each uses indices into tables and
//! allocates nothing once the tables have grown.

pub(crate) mod lists;
pub(crate) mod ordered;
pub(crate) mod sorted;
