//! The calibrated figures that a drawn disk has to keep.
//!
//! Each range belongs to one parameter, and several values at the ends of their ranges may together miss a
//! published figure that the file's own values meet. Such a disk is not one that the estimates describe.

use super::DiskModel;
use super::Op;
use super::figures::{Figure, Measure};
use super::published::{Published, Role};
use super::validate::{Effort, measure};

/// The calibrated figures that a disk's own values meet; by default none.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    rows: Vec<Published>,
}

impl Kept {
    /// The figures that `model` meets. A changed disk may miss figures of its file; those count no more.
    /// Random writes in the steady state are not among them: one measurement takes seconds.
    pub fn of(model: &DiskModel) -> Kept {
        let calibrated = model.published().iter().filter(|row| row.role == Role::Calibrated);
        let quick = calibrated.filter(|row| row.figure.measure != Measure::Steady);
        let mut rows: Vec<_> = quick.filter(|row| meets(model, row)).cloned().collect();
        rows.sort_by_key(|row| cost(row.figure.measure));
        Kept { rows }
    }

    /// The first figure that `drawn` misses by more than its tolerance, cheap ones first.
    pub(super) fn missed(&self, drawn: &DiskModel) -> Option<&'static Figure> {
        self.rows.iter().find(|row| !meets(drawn, row)).map(|row| row.figure)
    }
}

fn meets(model: &DiskModel, row: &Published) -> bool {
    let value = measure(model, row.figure.measure, Effort::Quick);
    (value - row.value).abs() <= row.value * row.tolerance_percent / 100.0
}

/// The order of measurements on flash by their time: writes need places in the mapping table.
fn cost(what: Measure) -> u32 {
    match what {
        Measure::Sequential(Op::Write, _)
        | Measure::SequentialLatency(Op::Write)
        | Measure::Small(Op::Write) => 1,
        Measure::Random(Op::Write, _)
        | Measure::Random8(Op::Write, _)
        | Measure::RandomLatency(Op::Write)
        | Measure::RandomP99(Op::Write, _)
        | Measure::Mixed(_) => 2,
        Measure::Sustained | Measure::Steady => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue;
    use super::super::draw::draw;
    use super::*;

    fn deviation(model: &DiskModel, row: &Published) -> f64 {
        let value = measure(model, row.figure.measure, Effort::Full);
        (value / row.value - 1.0).abs() * 100.0
    }

    #[test]
    fn a_drawn_disk_keeps_each_figure_that_its_file_meets_and_ranges_alone_would_not() {
        for (name, text) in catalogue::FILES {
            let model = catalogue::model(name).unwrap();
            let kept = Kept::of(&model);
            let none = Kept::default();
            let mut lost = 0;
            for seed in 0..8 {
                let drawn = |kept| {
                    let drawn = draw(text, name, &model, kept, seed).unwrap();
                    assert_eq!(drawn.missed, None, "{name}");
                    DiskModel::parse(&drawn.text, name).unwrap()
                };
                let made = drawn(&kept);
                for row in &kept.rows {
                    // Fewer commands decide, so that a disk at the edge may be a little outside.
                    let (off, allowed) = (deviation(&made, row), row.tolerance_percent + 0.5);
                    assert!(off <= allowed, "{name}, seed {seed}: {} is {off:.2} % off", row.figure.name);
                }
                lost += usize::from(kept.missed(&drawn(&none)).is_some());
            }
            println!("{name}: {lost} of 8 disks of the ranges alone miss a figure");
            assert!(lost > 0 || !["optane-900p", "950pro-256gb", "st3320620as"].contains(name), "{name}");
        }
    }

    #[test]
    fn figures_that_a_changed_disk_misses_are_no_condition() {
        let model = catalogue::model("wd10ezrx").unwrap();
        let names =
            |model: &DiskModel| Kept::of(model).rows.iter().map(|row| row.figure.name).collect::<Vec<_>>();
        let faster = model.with_override("rpm", "7200").unwrap();
        assert!(names(&model).contains(&"seq_read_outer_mb_s"));
        assert!(!names(&faster).contains(&"seq_read_outer_mb_s"));
        assert!(names(&faster).contains(&"seq_read_4k_mb_s"), "the link has not changed");
    }
}
