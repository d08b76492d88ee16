//! POSIX AIO as glibc does it: threads that read and write on behalf of a process.
//!
//! Follows `aio_misc.c` of glibc 2.36. Requests for one file are served one after another, in
//! the order in which they were made; files that have requests stand in a run list, and up to
//! twenty threads take the first of it. So `iodepth` decides how many requests wait, and the
//! number of files how many are served. A thread calls pread or pwrite and waits.
//!
//! Left out: priorities among requests (fio asks for none), threads that end after a second
//! without work, and CPU time for handing requests over and back. With `thread`, fio's jobs
//! share the twenty; here each has its own.

use std::collections::VecDeque;

use crate::pagecache::ReadAhead;
use crate::request::ProcessId;
use crate::workload::pattern::IoUnit;
use crate::workload::plan::ProcessSpec;
use crate::workload::spec::Engine;

/// Most threads of a process (`aio_threads`).
const THREADS_MAX: usize = 20;

/// How many threads will serve `process`: more than it has files would never have work.
pub fn threads(process: &ProcessSpec) -> usize {
    match process.job.queueing.engine {
        Engine::Posixaio => process.regions.len().min(THREADS_MAX),
        _ => 0,
    }
}

/// A request for a thread.
#[derive(Clone, Copy, Debug)]
pub struct AioRequest {
    /// The process's slot.
    pub slot: u32,
    /// What to do.
    pub unit: IoUnit,
    /// The process's region that it lies in.
    pub region: u32,
}

/// One open file.
#[derive(Debug)]
struct OpenFile {
    waiting: VecDeque<AioRequest>,
    /// A thread is at one of its requests.
    served: bool,
    /// Belongs to the open file: whichever thread reads goes on from there.
    read_ahead: ReadAhead,
}

/// The requests of one process, and its threads.
#[derive(Debug)]
pub struct Pool {
    owner: ProcessId,
    files: Vec<OpenFile>,
    /// Files that have a request and no thread.
    runnable: VecDeque<u32>,
    threads: Vec<ProcessId>,
    idle: VecDeque<ProcessId>,
    /// Slots whose requests have ended, in order.
    ended: VecDeque<u32>,
    /// So many of them will wake the process; 0 if it waits for none.
    wanted: usize,
}

impl Pool {
    /// `owner` has asked for nothing yet; its files as they were opened.
    pub fn new(owner: ProcessId, read_ahead: &[ReadAhead], threads: Vec<ProcessId>) -> Pool {
        let file = |&read_ahead| OpenFile { waiting: VecDeque::new(), served: false, read_ahead };
        Pool {
            owner,
            files: read_ahead.iter().map(file).collect(),
            runnable: VecDeque::new(),
            idle: threads.iter().copied().collect(),
            threads,
            ended: VecDeque::new(),
            wanted: 0,
        }
    }

    /// Its threads.
    pub fn threads(&self) -> &[ProcessId] {
        &self.threads
    }

    /// The process asks; the thread that is to be woken, if one has nothing to do.
    pub fn submit(&mut self, request: AioRequest) -> Option<ProcessId> {
        let file = &mut self.files[request.region as usize];
        file.waiting.push_back(request);
        if file.served || file.waiting.len() > 1 {
            return None;
        }
        self.runnable.push_back(request.region);
        self.idle.pop_front()
    }

    /// What `thread` is to do, and the file's read-ahead; if nothing, it is idle.
    pub fn next(&mut self, thread: ProcessId) -> Option<(AioRequest, ReadAhead)> {
        let Some(region) = self.runnable.pop_front() else {
            self.idle.push_back(thread);
            return None;
        };
        let file = &mut self.files[region as usize];
        file.served = true;
        let request = file.waiting.pop_front().expect("a file in the run list has a request");
        Some((request, file.read_ahead))
    }

    /// A thread is done with `request`; the process, if that is to be woken.
    pub fn finish(&mut self, request: AioRequest, read_ahead: ReadAhead) -> Option<ProcessId> {
        let file = &mut self.files[request.region as usize];
        file.served = false;
        file.read_ahead = read_ahead;
        if !file.waiting.is_empty() {
            self.runnable.push_back(request.region);
        }
        self.ended.push_back(request.slot);
        let wakes = self.wanted > 0 && self.ended.len() >= self.wanted;
        if wakes {
            self.wanted = 0;
        }
        wakes.then_some(self.owner)
    }

    /// Move the slots of requests that have ended to `done`. If that then holds fewer than
    /// `least`, the process is woken when so many have ended.
    pub fn collect(&mut self, done: &mut VecDeque<u32>, least: usize) {
        done.append(&mut self.ended);
        self.wanted = least.saturating_sub(done.len());
    }
}
