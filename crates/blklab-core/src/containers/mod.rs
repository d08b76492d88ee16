//! Data structures for requests, queues and tags. Each uses indices into tables and
//! allocates nothing once the tables have grown. [`few`] is for what a machine has of each device.

pub(crate) mod few;
pub(crate) mod lists;
pub(crate) mod ordered;
pub(crate) mod rbtree;
pub(crate) mod sorted;
pub(crate) mod tags;
