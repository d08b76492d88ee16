//! I/Os in flight: submitted, waited for and taken, by the job's engine.

mod aio;
mod ring;

use std::io;
use std::os::fd::RawFd;

use blklab_core::units::Nanos;
use blklab_core::workload::spec::Engine;
use blklab_disk::shared::Buffers;

/// An I/O to submit.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its buffer's number, which also identifies its completion.
    pub slot: u32,
    /// An open file.
    pub fd: RawFd,
    /// True for a write.
    pub write: bool,
    /// Its first byte.
    pub at: u64,
    /// Its length.
    pub bytes: u32,
    /// Its priority, encoded as for `ioprio_set(2)`.
    pub prio: u16,
    /// libaio: it comes under a plug of its own, if few are submitted at once.
    pub own_plug: bool,
    /// libaio: a write that is durable when it completes.
    pub durable: bool,
}

/// A completion: the slot and the number of bytes.
type Taken = (u32, io::Result<u32>);

/// When the CPU has done the work of a completion, in nanoseconds since the epoch; `None` if the kernel does not
/// charge it.
type Done = Option<Nanos>;

/// Reads and writes in flight, each with its own buffer.
pub struct Queue {
    // Declared before the buffers: the kernel no longer uses them when the engine is gone.
    engine: Handles,
    buffers: Buffers,
}

/// The kernel's handle of the queue.
enum Handles {
    /// The job waits for every I/O.
    None,
    Aio(aio::Aio),
    Ring(ring::Ring),
}

impl Queue {
    /// With room for `depth` I/Os of at most `bytes`.
    pub fn new(engine: Engine, depth: u32, bytes: usize) -> io::Result<Queue> {
        let engine = match engine {
            Engine::Libaio => Handles::Aio(aio::Aio::new(depth)?),
            Engine::IoUring => Handles::Ring(ring::Ring::new(depth)?),
            _ => Handles::None,
        };
        Ok(Queue { engine, buffers: Buffers::new(depth as usize, bytes)? })
    }

    /// Takes the memory of all buffers. A direct read into memory that no one has used yet would be done through
    /// the page cache by btrfs (`btrfs_direct_read`).
    pub fn touch_buffers(&mut self) {
        self.buffers.touch();
    }

    /// The buffer of `slot`, which has no I/O in flight.
    pub fn buffer(&mut self, slot: u32, bytes: usize) -> &mut [u8] {
        self.buffers.get(slot as usize, bytes)
    }

    /// Prepares an I/O.
    pub fn prepare(&mut self, request: Request) {
        let address = self.buffers.address(request.slot as usize);
        match &mut self.engine {
            Handles::None => unreachable!("an engine that blocks prepares nothing"),
            Handles::Aio(aio) => aio.prepare(request, address),
            Handles::Ring(ring) => ring.prepare(request, address),
        }
    }

    /// Submits what is prepared. io_uring also waits for `least` completions in the same call;
    /// `io_submit()` may have to wait for a tag.
    pub fn submit(&mut self, least: u32) -> io::Result<()> {
        match &mut self.engine {
            Handles::None => Ok(()),
            Handles::Aio(aio) => aio.submit(),
            Handles::Ring(ring) => ring.enter(least),
        }
    }

    /// Waits until `least` completions can be taken, and gets at most `most`.
    pub fn wait(&mut self, least: u32, most: u32) -> io::Result<()> {
        match &mut self.engine {
            Handles::None => Ok(()),
            Handles::Aio(aio) => aio.wait(least, most),
            Handles::Ring(ring) => ring.wait(least),
        }
    }

    /// Gets all completions that have come since, without waiting.
    pub fn gather(&mut self) -> io::Result<()> {
        match &mut self.engine {
            Handles::None => Ok(()),
            Handles::Aio(aio) => aio.gather(),
            Handles::Ring(ring) => ring.gather(),
        }
    }

    /// Completions that can be taken.
    pub fn ready(&mut self) -> u32 {
        match &mut self.engine {
            Handles::None => 0,
            Handles::Aio(aio) => aio.ready(),
            Handles::Ring(ring) => ring.ready(),
        }
    }

    /// When the work of the last of so many completions is done that can be taken.
    pub fn done_at(&self, count: u32) -> Done {
        match &self.engine {
            Handles::Aio(aio) => aio.done_at(count),
            Handles::None | Handles::Ring(_) => None,
        }
    }

    /// The next completion.
    pub fn take(&mut self) -> Option<Taken> {
        match &mut self.engine {
            Handles::None => None,
            Handles::Aio(aio) => aio.take(),
            Handles::Ring(ring) => ring.take(),
        }
    }
}

/// The result of the kernel: bytes, or a negative error number.
fn outcome(result: i64) -> io::Result<u32> {
    u32::try_from(result).map_err(|_| io::Error::from_raw_os_error(result.unsigned_abs() as i32))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsRawFd;

    use super::*;

    const BYTES: u32 = 4096;

    /// Writes four blocks and reads them back, each through its own slot.
    fn written_and_read(engine: Engine) -> io::Result<()> {
        let mut file = tempfile::tempfile()?;
        let mut queue = Queue::new(engine, 4, BYTES as usize)?;
        for write in [true, false] {
            for slot in 0..4 {
                let fill = if write { slot as u8 + 1 } else { 0 };
                queue.buffer(slot, BYTES as usize).fill(fill);
                let at = u64::from(slot * BYTES);
                queue.prepare(Request {
                    slot,
                    fd: file.as_raw_fd(),
                    write,
                    at,
                    bytes: BYTES,
                    prio: 0,
                    own_plug: false,
                    durable: false,
                });
            }
            queue.submit(0)?;
            let mut slots = Vec::new();
            while slots.len() < 4 {
                queue.wait(1, 2)?;
                assert!(queue.ready() >= 1);
                let (slot, bytes) = queue.take().expect("it is there");
                assert_eq!(bytes?, BYTES);
                slots.push(slot);
            }
            slots.sort_unstable();
            assert_eq!(slots, [0, 1, 2, 3]);
        }
        let mut text = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut text)?;
        for slot in 0..4_u32 {
            let block = &text[(slot * BYTES) as usize..][..BYTES as usize];
            assert!(block.iter().all(|&byte| byte == slot as u8 + 1));
            assert_eq!(queue.buffer(slot, BYTES as usize), block);
        }
        file.flush()
    }

    /// A machine may forbid io_uring, or have no aio contexts left.
    fn unless_forbidden(result: io::Result<()>) {
        match result.as_ref().map_err(io::Error::raw_os_error) {
            Err(Some(libc::ENOSYS | libc::EPERM | libc::EAGAIN)) => println!("skipped: {result:?}"),
            _ => result.expect("good I/O"),
        }
    }

    #[test]
    fn io_submit_moves_each_slots_data() {
        unless_forbidden(written_and_read(Engine::Libaio));
    }

    #[test]
    fn io_uring_moves_each_slots_data() {
        unless_forbidden(written_and_read(Engine::IoUring));
    }

    #[test]
    fn a_refused_system_call_is_the_kernels_error() {
        let refused = |engine| -> io::Result<()> {
            let mut queue = Queue::new(engine, 1, BYTES as usize)?;
            queue.prepare(Request {
                slot: 0,
                fd: -1,
                write: false,
                at: 0,
                bytes: BYTES,
                prio: 0,
                own_plug: true,
                durable: false,
            });
            queue.submit(1)?;
            queue.wait(1, 1)?;
            queue.take().expect("it is there").1.map(|_| ())
        };
        for engine in [Engine::Libaio, Engine::IoUring] {
            let error = refused(engine).unwrap_err().raw_os_error();
            assert!(matches!(error, Some(libc::EBADF | libc::ENOSYS | libc::EPERM)), "{error:?}");
        }
    }
}
