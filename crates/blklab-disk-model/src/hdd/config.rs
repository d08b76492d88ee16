//! The keys of a hard disk's file, in the model's units.

use super::geometry::Geometry;
use super::seek::SeekCurve;
use crate::keys::{Conflict, Values, conflict};
use blklab_base::units::SECTOR_BYTES;

/// The order of queued commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Fcfs,
    Clook,
    Sstf,
    Sptf,
}

/// The keys of a hard disk, in the model's units.
#[derive(Clone, Debug)]
pub struct HddConfig {
    pub(super) geometry: Geometry,
    pub(super) seek: SeekCurve,
    pub(super) write_settle_ns: i64,
    pub(super) head_switch_ns: u64,
    /// Sectors of a physical block.
    pub(super) physical_sectors: u64,
    pub(super) segments: usize,
    pub(super) segment_sectors: u64,
    /// 0: none.
    pub(super) read_ahead_sectors: u64,
    pub(super) read_ahead_to: AheadTo,
    pub(super) read_ahead_keeps: bool,
    pub(super) zero_latency_read: bool,
    pub(super) zero_latency_write: bool,
    pub(super) read_keeps_passed: bool,
    pub(super) read_ahead_after_hit: bool,
    pub(super) read_ahead_ends_sector: bool,
    pub(super) write_drops_read: bool,
    pub(super) write_cache: bool,
    pub(super) write_cache_sectors: u64,
    pub(super) write_cache_extents: usize,
    pub(super) write_cache_keeps: bool,
    pub(super) destage_percent: f64,
    pub(super) destage_idle_ns: u64,
    pub(super) destage_burst: usize,
    pub(super) policy: Policy,
    /// The number of commands with a fixed order, including the current one.
    pub(super) plan: usize,
    /// The commands compared for each choice, in percent of those in the drive.
    pub(super) look_ahead_percent: usize,
    /// The number of commands that are taken and reported at once.
    pub(super) batch: usize,
    /// Head start per waiting time, in 1/1024.
    pub(super) ageing: u64,
    pub(super) deadline_ns: u64,
    pub(super) deadline_batch: u32,
    /// How long the head stays with a stream; 0: it leaves at once.
    pub(super) linger_ns: u64,
    /// The controller's work, after a read and after a write.
    pub(super) read_overhead_ns: [u64; 2],
    pub(super) read_hit_ns: [u64; 2],
    pub(super) write_overhead_ns: [u64; 2],
    /// From a write's submission until its data arrive; none: they arrive before the arm moves.
    pub(super) write_data_ns: Option<u64>,
    pub(super) write_seek_min_ns: u64,
    pub(super) read_reselect_ns: u64,
    pub(super) read_reselect_share: f64,
    pub(super) read_end_ns: u64,
    pub(super) write_end_ns: u64,
    pub(super) write_reselect_ns: u64,
    /// Link time per sector, times 2^16, to the host and from it.
    pub(super) link_fx: u64,
    pub(super) link_write_fx: u64,
    /// The link delays data from the medium.
    pub(super) link_holds_up: bool,
    /// A read from the medium occupies the link until its end.
    pub(super) link_held: bool,
}

/// The end of read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AheadTo {
    Distance,
    Segment,
    Track,
    NextTrack,
}

impl HddConfig {
    pub fn new(values: &Values) -> Result<HddConfig, Conflict> {
        let geometry = Geometry::new(values)?;
        let seek = SeekCurve::new(values, geometry.cylinders)?;
        let segments = values.whole("cache_segments") as usize;
        let sectors = |name| values.number(name).map(|sectors| sectors as u64);
        let segment_sectors = sectors("cache_segment_sectors")
            .unwrap_or_else(|| values.whole("cache_kib") * 2 / segments as u64);
        let read_ahead_sectors =
            sectors("read_ahead_sectors").unwrap_or_else(|| values.whole("read_ahead_kib") * 2);
        let read_ahead_sectors = if values.flag("read_ahead") { read_ahead_sectors } else { 0 };
        if read_ahead_sectors > segment_sectors {
            let message = format!(
                "found {}; a segment of the cache holds {} KiB",
                read_ahead_sectors / 2,
                segment_sectors / 2
            );
            return conflict("read_ahead_kib", message);
        }
        let overhead = |after_read: &str, after_write: &str| {
            let first = values.us(after_read);
            [first, values.number(after_write).map_or(first, |_| values.us(after_write))]
        };
        let link_fx = |mb_s: f64| (SECTOR_BYTES as f64 * 1e3 / mb_s * 65_536.0).round() as u64;
        let (to_host, from_host) = (values.given("link_mb_s"), values.number("link_write_mb_s"));
        // A sector on the link and on the fastest track, in nanoseconds.
        let (on_link, on_track) = (link_fx(to_host) >> 16, geometry.fastest_sector_ns());
        let read_reselect_ns = values.us("read_reselect_us");
        Ok(HddConfig {
            seek,
            write_settle_ns: (values.given("write_settle_ms") * 1e6).round() as i64,
            head_switch_ns: values.ms("head_switch_ms"),
            physical_sectors: values.whole("physical_block_bytes") / SECTOR_BYTES,
            segments,
            segment_sectors,
            read_ahead_sectors,
            read_ahead_to: match values.text("read_ahead_to") {
                "segment" => AheadTo::Segment,
                "track" => AheadTo::Track,
                "next_track" => AheadTo::NextTrack,
                _ => AheadTo::Distance,
            },
            read_ahead_keeps: values.flag("read_ahead_keeps"),
            zero_latency_read: values.flag("zero_latency_read"),
            zero_latency_write: values.flag("zero_latency_write"),
            read_keeps_passed: values.flag("read_keeps_passed"),
            read_ahead_after_hit: values.flag("read_ahead_after_hit"),
            read_ahead_ends_sector: values.flag("read_ahead_ends_sector"),
            write_drops_read: values.flag("write_drops_read"),
            write_cache: values.flag("write_cache"),
            write_cache_sectors: values.whole("write_cache_kib") * 2,
            write_cache_extents: values.whole("write_cache_extents") as usize,
            write_cache_keeps: values.flag("write_cache_keeps"),
            destage_percent: values.given("destage_percent"),
            destage_idle_ns: values.ms("destage_idle_ms"),
            destage_burst: values.whole("destage_burst") as usize,
            policy: match values.text("ncq_policy") {
                "fcfs" => Policy::Fcfs,
                "clook" => Policy::Clook,
                "sstf" => Policy::Sstf,
                _ => Policy::Sptf,
            },
            plan: values.whole("ncq_plan") as usize,
            look_ahead_percent: values.whole("ncq_look_ahead_percent") as usize,
            batch: values.whole("ncq_batch") as usize,
            ageing: (values.given("ncq_ageing") * 1024.0).round() as u64,
            deadline_ns: values.ms("ncq_deadline_ms"),
            deadline_batch: values.whole("ncq_deadline_batch") as u32,
            linger_ns: values.ms("ncq_linger_ms"),
            read_overhead_ns: overhead("read_overhead_us", "read_overhead_after_write_us"),
            read_hit_ns: overhead("read_hit_us", "read_hit_after_write_us"),
            write_overhead_ns: overhead("write_overhead_us", "write_overhead_after_write_us"),
            write_data_ns: values.number("write_data_us").map(|_| values.us("write_data_us")),
            write_seek_min_ns: values.ms("write_seek_min_ms"),
            read_reselect_ns,
            read_reselect_share: values.given("read_reselect_percent") / 100.0,
            read_end_ns: values.us("read_end_us"),
            write_end_ns: values.us("write_end_us"),
            write_reselect_ns: values.us("write_reselect_us"),
            link_fx: link_fx(to_host),
            link_write_fx: link_fx(from_host.unwrap_or(to_host)),
            link_holds_up: on_link > on_track || read_reselect_ns > 0 || values.flag("zero_latency_read"),
            link_held: values.flag("link_held"),
            geometry,
        })
    }
}
