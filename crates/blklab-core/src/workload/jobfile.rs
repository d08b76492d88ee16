//! A job file as read: [`JobFile`].

use std::sync::Arc;

use super::spec::JobSpec;

/// A job file, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    /// As it was named.
    pub path: String,
    /// The sections other than `[global]`, in order.
    pub jobs: Vec<Arc<JobSpec>>,
}
