//! A second thread of a process, which takes its completions while the first may sleep for a request.
//!
//! An I/O completes when it does, not when its process is back from `io_submit()`: its latency counts
//! until then, and other processes may wait for it. In a guest the first is known from the events
//! (`from_events`), so that only the second needs a deputy: it may change which process gets the next
//! request.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, Scope};

use blklab_core::request::ProcessId;

use crate::aio::{Event, TAKEN_MAX};
use crate::{Run, STACK_BYTES};

/// The deputy of a process, which does not exist before it is needed.
pub struct Deputy<'a> {
    run: &'a Run<'a>,
    id: ProcessId,
    shared: Option<Arc<Shared>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Completions are the deputy's.
    is_needed: bool,
    /// It waits for completions.
    waits: bool,
    /// The process has ended.
    has_ended: bool,
}

impl<'a> Deputy<'a> {
    /// The deputy of that process.
    pub fn new(run: &'a Run<'a>, id: ProcessId) -> Deputy<'a> {
        Deputy { run, id, shared: None }
    }

    /// From now on completions are the deputy's.
    pub fn begin<'scope>(&mut self, scope: &'scope Scope<'scope, 'a>) -> io::Result<()> {
        let shared = match &self.shared {
            Some(shared) => shared,
            None => {
                let shared = Arc::<Shared>::default();
                let (run, id, its) = (self.run, self.id, Arc::clone(&shared));
                let work = move || its.serve(run, id).unwrap_or_else(|error| run.fail(error.to_string()));
                thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work)?;
                self.shared.insert(shared)
            }
        };
        shared.state.lock().expect("no thread panics with it").is_needed = true;
        shared.changed.notify_all();
        Ok(())
    }

    /// Whether completions are the deputy's.
    pub fn is_needed(&self) -> bool {
        let needed = |shared: &Arc<Shared>| shared.state.lock().expect("no thread panics with it").is_needed;
        self.shared.as_ref().is_some_and(needed)
    }

    /// From now on they are the process's again.
    pub fn end(&self) -> io::Result<()> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let mut state = shared.state.lock().expect("no thread panics with it");
        state.is_needed = false;
        if state.waits {
            self.run.notify(self.id)?;
            drop(shared.changed.wait_while(state, |state| state.waits).expect("nor here"));
        }
        Ok(())
    }
}

impl Drop for Deputy<'_> {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            let mut state = shared.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            state.has_ended = true;
            drop(state);
            shared.changed.notify_all();
            // It may wait for completions, if the process has failed.
            let _ = self.run.notify(self.id);
        }
    }
}

impl Shared {
    fn serve(&self, run: &Run<'_>, id: ProcessId) -> io::Result<()> {
        run.begin(id);
        let mut events = vec![Event::default(); TAKEN_MAX];
        let mut state = self.state.lock().expect("no thread panics with it");
        loop {
            state = self.changed.wait_while(state, |s| !s.is_needed && !s.has_ended).expect("nor here");
            if state.has_ended {
                return Ok(());
            }
            state.waits = true;
            while state.is_needed && !state.has_ended {
                drop(state);
                let taken = match run.context(id).get(1, &mut events, None) {
                    Ok(count) => run.take(id, &events[..count]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                    Err(error) => Err(error),
                };
                state = self.state.lock().expect("nor here");
                if taken.is_err() {
                    state.waits = false;
                    self.changed.notify_all();
                    return taken;
                }
            }
            state.waits = false;
            self.changed.notify_all();
        }
    }
}
