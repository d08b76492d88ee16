//! POSIX AIO as in glibc: threads that read and write for a process.
//!
//! Follows `aio_misc.c` of glibc 2.36. Requests for one file are served one after another, in the
//! order of submission. Files with requests are in a run list, and up to twenty threads take the
//! first file of it. So `iodepth` sets how many requests wait, and the number of files sets how
//! many are served. A thread calls pread or pwrite and waits.
//!
//! Left out: priorities among requests (fio sets none), threads that end after a second without
//! work, and CPU time for passing requests to threads and back. With `thread`, fio's jobs share the
//! twenty; here each has its own.

use std::collections::VecDeque;

use crate::pagecache::ReadAhead;
use crate::request::ProcessId;
use crate::workload::pattern::IoUnit;
use crate::workload::plan::ProcessSpec;
use crate::workload::spec::Engine;

/// The maximum number of threads of a process (`aio_threads`).
const THREADS_MAX: usize = 20;

/// The number of threads for `process`: more than it has files would never have work.
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
    /// The I/O.
    pub unit: IoUnit,
    /// The process's region with that I/O.
    pub region: u32,
}

/// One open file.
#[derive(Debug)]
struct OpenFile {
    waiting: VecDeque<AioRequest>,
    /// A thread is serving one of its requests.
    served: bool,
    /// Belongs to the open file: any thread that reads continues from there.
    read_ahead: ReadAhead,
}

/// The requests of one process, and its threads.
#[derive(Debug)]
pub struct Pool {
    owner: ProcessId,
    files: Vec<OpenFile>,
    /// Files with a request and without a thread.
    runnable: VecDeque<u32>,
    threads: Vec<ProcessId>,
    idle: VecDeque<ProcessId>,
    /// Slots with completed requests, in order.
    ended: VecDeque<u32>,
    /// This many of them will wake the process; 0 if it does not wait.
    wanted: usize,
}

impl Pool {
    /// Without requests; its files are newly opened.
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

    /// The process submits a request; returns the thread to wake, if one is idle.
    pub fn submit(&mut self, request: AioRequest) -> Option<ProcessId> {
        let file = &mut self.files[request.region as usize];
        file.waiting.push_back(request);
        if file.served || file.waiting.len() > 1 {
            return None;
        }
        self.runnable.push_back(request.region);
        self.idle.pop_front()
    }

    /// The next request of `thread`, and the file's read-ahead; without a request the thread is
    /// idle.
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

    /// A thread has completed `request`; returns the process if it must be woken.
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

    /// Moves the slots of completed requests to `done`. If `done` then holds fewer than `least`,
    /// the process is woken when the missing ones have completed.
    pub fn collect(&mut self, done: &mut VecDeque<u32>, least: usize) {
        done.append(&mut self.ended);
        self.wanted = least.saturating_sub(done.len());
    }
}
