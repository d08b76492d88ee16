//! Disk files, and a disk with some keys changed: what is accepted can be built and serves commands.

use blklab_core::disk::{Command, Disk, DiskModel, Kept, Op, Tag, catalogue, draw};
use blklab_core::units::{Nanos, Sector};

use crate::check_message;

const SHIPPED: [&str; 4] = ["su800-128gb", "desktop-5900rpm", "optane-900p", "sas-10k"];

pub fn file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match DiskModel::parse(text, "disk.toml") {
        Ok(model) => {
            serves(&model);
            // No figure has to be met: measuring one of a hostile file may take any time.
            let drawn = draw(text, "disk.toml", &model, &Kept::default(), 1);
            let drawn = drawn.expect("of a disk that is accepted").text;
            serves(&DiskModel::parse(&drawn, "drawn.toml").expect("a drawn disk is a disk"));
        }
        Err(error) => check_message(&error, data),
    }
}

/// The number of a shipped disk, and behind it a line `KEY=VALUE` for each change.
pub fn overrides(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let number: usize = lines.next().and_then(|line| line.parse().ok()).unwrap_or(0);
    let mut model = catalogue::model(SHIPPED[number % SHIPPED.len()]).expect("a disk of ours");
    for line in lines {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        match model.with_override(key, value) {
            Ok(changed) => model = changed,
            Err(error) => check_message(&error, data),
        }
    }
    serves(&model);
}

/// Every command ends, in an order of time.
fn serves(model: &DiskModel) {
    let limits = model.limits();
    assert!(limits.queue_depth > 0 && limits.hw_queues > 0 && limits.capacity.0 > 0);
    let mut disk = model.build(1);
    let (mut now, mut done) = (Nanos::ZERO, Vec::new());
    let block = (limits.logical_block_bytes / 512).max(1);
    let sectors = block.min(limits.max_hw_sectors.max(1));
    let last = limits.capacity.0.saturating_sub(sectors.into()) / u64::from(block) * u64::from(block);
    let rows = [
        (Op::Write, 0),
        (Op::Read, last),
        (Op::Write, last),
        (Op::Read, 0),
        (Op::Discard, 0),
        (Op::Flush, 0),
    ];
    for (op, sector) in rows {
        let (sector, sectors) = if op == Op::Flush { (0, 0) } else { (sector, sectors) };
        let command = Command { tag: Tag(0), op, sector: Sector(sector), sectors, fua: false };
        disk.submit(now, command);
        done.clear();
        for step in 0.. {
            assert!(step < 1 << 20, "{op:?} does not end");
            let next = disk.next_event();
            assert!(next != Nanos::NEVER, "{op:?} is forgotten");
            assert!(next >= now, "{op:?} ends before it begins");
            now = next;
            disk.advance(now, &mut done);
            if !done.is_empty() {
                break;
            }
        }
        assert_eq!(done.len(), 1, "{op:?} ends once");
    }
}
