//! Data structures that schedulers keep requests and queues in. Each works on indices into
//! tables and allocates nothing once the tables have grown.

pub(crate) mod lists;
pub(crate) mod ordered;
pub(crate) mod sorted;
