//! The time of a simulated I/O in the disk model alone: 4 KiB random reads, 32 at a time.

use blklab_base::units::{Nanos, Sector};
use blklab_disk_model::{Command, Disk, Op, Tag, catalogue};
use divan::counter::ItemsCount;

const READS: u32 = 100_000;

fn main() {
    divan::main();
}

#[divan::bench(args = ["wd10ezrx", "sas-10k", "su800-128gb", "950pro-256gb", "pm983-960gb", "optane-900p"])]
fn random_reads(bencher: divan::Bencher, name: &str) {
    let model = catalogue::model(name).expect("a shipped disk");
    bencher.counter(ItemsCount::new(READS)).with_inputs(|| model.build(1)).bench_values(|mut disk| {
        let blocks = disk.limits().capacity.0 / 8;
        let mut state = 1u64;
        let mut read = |tag| {
            // Marsaglia's xorshift: cheap compared with the measured code.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let sector = Sector(state % blocks * 8);
            Command { tag, op: Op::Read, sector, sectors: 8, fua: false }
        };
        let mut done = Vec::with_capacity(32);
        for tag in 0..32 {
            disk.submit(Nanos::ZERO, read(Tag(tag)));
        }
        let mut left = READS;
        while left > 0 {
            let now = disk.next_event();
            disk.advance(now, &mut done);
            for completion in done.drain(..) {
                left = left.saturating_sub(1);
                disk.submit(now, read(completion.tag));
            }
        }
        disk
    });
}
