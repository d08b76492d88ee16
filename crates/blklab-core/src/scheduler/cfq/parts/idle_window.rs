//! The idle window of a queue: whether the disk idles for it.
//!
//! An idle wait pays if the process comes back soon, and with a request nearby. Thus the window
//! closes when the process's think time is longer than `slice_idle`, when the process has exited,
//! when the next request is the last of a series (the writes of an fsync), and when the requests
//! are seeky. A seeky queue keeps its window if it once had four waiting requests (it is *deep*):
//! the disk can reorder these, so its requests come faster than one seek at a time.
//!
//! A deep, seeky queue is doubted when it runs empty in the first half of its slice: the disk
//! serves its requests faster than the process sends them. And a queue whose idle wait was in vain
//! is not deep any more.
//!
//! Queues with a closed window are served one after the other, as if they were one, with one idle
//! wait at the end (workload type sync-noidle).
//!
//! Follows `cfq_update_idle_window` and the flags `idle_window` and `deep` of Linux 4.12, which
//! `cfq_select_queue` and `cfq_idle_slice_timer` clear.

/// With as many waiting requests a queue is deep.
const DEEP_REQUESTS: usize = 4;

/// The window of one queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler::cfq) struct IdleWindow {
    open: bool,
    deep: bool,
}

impl IdleWindow {
    pub fn new(open: bool) -> IdleWindow {
        IdleWindow { open, deep: false }
    }

    /// Worth idling for.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// A request of the queue comes: `waiting` are there now. `comes_back`: the process will send
    /// another one soon; `None`: its think time is not known.
    pub fn request(&mut self, waiting: usize, is_seeky: bool, comes_back: Option<bool>) {
        self.deep |= waiting >= DEEP_REQUESTS;
        if is_seeky && !self.deep {
            self.open = false;
        } else if let Some(comes_back) = comes_back {
            self.open = comes_back;
        }
    }

    /// The queue ran empty too early for an idle wait to pay.
    pub fn close(&mut self) {
        *self = IdleWindow { open: false, deep: false };
    }

    /// An idle wait was in vain.
    pub fn waited_in_vain(&mut self) {
        self.deep = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_open_for_processes_that_come_back_soon() {
        let mut window = IdleWindow::new(true);
        window.request(1, false, Some(false));
        assert!(!window.is_open());
        window.request(1, false, None);
        assert!(!window.is_open(), "nothing new is known");
        window.request(1, false, Some(true));
        assert!(window.is_open());
    }

    #[test]
    fn a_seeky_queue_has_a_window_only_if_it_is_deep() {
        let mut window = IdleWindow::new(true);
        window.request(3, true, Some(true));
        assert!(!window.is_open());
        window.request(4, true, Some(true));
        assert!(window.is_open());
        window.request(1, true, Some(true));
        assert!(window.is_open(), "it stays deep");
        window.waited_in_vain();
        window.request(1, true, Some(true));
        assert!(!window.is_open());
    }

    #[test]
    fn a_doubted_queue_must_be_deep_again() {
        let mut window = IdleWindow::new(true);
        window.request(4, true, Some(true));
        window.close();
        assert!(!window.is_open());
        window.request(3, true, Some(true));
        assert!(!window.is_open());
    }
}
