//! The idle window of a queue: whether the disk idles for its next request.
//!
//! Only synchronous queues outside the idle class can have one. It closes while the process's think
//! time is longer than `slice_idle`, while idling is switched off, and for a process that seeks on a
//! disk that queues commands. Follows the flag `idle_window` and `cfq_update_idle_window`.

/// The window of one queue.
#[derive(Clone, Copy, Debug)]
pub(in crate::scheduler) struct IdleWindow {
    /// The queue can have a window.
    possible: bool,
    open: bool,
}

impl IdleWindow {
    pub fn new(possible: bool) -> IdleWindow {
        IdleWindow { possible, open: possible }
    }

    /// Worth idling for.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// A request comes. `never`: idling cannot pay; `thinks_longer`: than `slice_idle`; `None`: the
    /// think time is not known.
    pub fn request(&mut self, never: bool, thinks_longer: Option<bool>) {
        if self.possible {
            self.open = !never && thinks_longer.map_or(self.open, |longer| !longer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_open_for_processes_that_come_back_soon() {
        let mut window = IdleWindow::new(true);
        window.request(false, Some(true));
        assert!(!window.is_open());
        window.request(false, None);
        assert!(!window.is_open(), "nothing new is known");
        window.request(false, Some(false));
        assert!(window.is_open());
        window.request(true, Some(false));
        assert!(!window.is_open());
    }

    #[test]
    fn a_queue_without_a_window_gets_none() {
        let mut window = IdleWindow::new(false);
        window.request(false, Some(false));
        assert!(!window.is_open());
    }
}
