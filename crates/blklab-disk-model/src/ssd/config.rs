//! The keys of a solid-state disk, in the model's units.

use super::super::keys::{Conflict, Values, conflict};
use super::mapping::SPARE_MIN;

/// The size of a small command: 4 KiB.
const SMALL_SECTORS: u32 = 8;

/// The controller's serial time for a command that continues a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    command_ns: u64,
    /// Nanoseconds per sector, times 2^16.
    sector_fx: u64,
}

impl Pace {
    /// `None` if neither key is given; a command then costs `usual_ns` by default.
    fn new(values: &Values, command_us: &str, mb_s: &str, usual_ns: u64) -> Option<Pace> {
        let (command, rate) = (values.number(command_us), values.number(mb_s));
        (command.is_some() || rate.is_some()).then(|| Pace {
            command_ns: command.map_or(usual_ns, |us| (us * 1e3).round() as u64),
            sector_fx: rate.map_or(0, fx),
        })
    }

    /// The rate applies to the data after the first 4 KiB; the command's own time covers these. So small
    /// commands may have a higher rate than large ones.
    #[inline]
    pub fn of(self, sectors: u32) -> u64 {
        self.command_ns.max(self.more(sectors.saturating_sub(SMALL_SECTORS)))
    }

    /// The time for more data of the same command.
    #[inline]
    pub fn more(self, sectors: u32) -> u64 {
        (u64::from(sectors) * self.sector_fx) >> 16
    }
}

/// Nanoseconds per sector, times 2^16.
fn fx(mb_s: f64) -> u64 {
    (512.0 * 1e3 / mb_s * 65_536.0).round() as u64
}

#[derive(Clone, Debug)]
pub(crate) struct SsdConfig {
    pub capacity_sectors: u64,
    pub channels: u32,
    pub dies: u32,
    /// Each die's channel.
    channel_of: Vec<u32>,
    /// Sectors of a mapping unit.
    pub unit_sectors: u64,
    pub unit_shift: u32,
    pub page_units: u32,
    /// Units of a stripe: the pages of all planes of a die, read or programmed in one step.
    pub stripe_units: u32,
    pub stripe_shift: u32,
    pub pages_per_block: u32,
    pub superblocks: u32,
    /// Host units after which the same number is freed; 0: with each.
    pub collect_units: u32,
    pub paced: bool,
    pub logical_units: u32,
    pub filled_units: u32,
    pub preconditioned: bool,
    pub read_ns: Vec<u64>,
    pub program_ns: Vec<u64>,
    pub erase_ns: u64,
    pub suspend_ns: u64,
    pub channel_fx: u64,
    pub link_fx: u64,
    pub command_ns: u64,
    pub link_command_ns: u64,
    pub read_latency_ns: u64,
    pub write_latency_ns: u64,
    pub write_command_ns: u64,
    pub stream_read: Option<Pace>,
    pub stream_write: Option<Pace>,
    pub read_ahead_stripes: u32,
    pub write_cache: bool,
    pub buffer_sectors: u64,
    pub protected: bool,
    pub flush_ns: u64,
    /// Written in place, without buffer or mapping.
    pub direct: bool,
    pub slc_units_empty: u64,
    pub slc_units_full: u64,
    pub slc_program_ns: u64,
    pub slc_idle_ns: u64,
}

impl SsdConfig {
    pub fn new(values: &Values) -> Result<SsdConfig, Conflict> {
        let capacity = values.whole("capacity_sectors");
        let channels = values.whole("channels") as u32;
        let dies = channels * values.whole("dies_per_channel") as u32;
        let unit = values.whole("mapping_unit_kib") * 2;
        let page = values.whole("page_kib") * 2;
        let stripe = page * values.whole("planes");
        for (name, sectors) in [("mapping_unit_kib", unit), ("page_kib", page), ("planes", stripe)] {
            if !sectors.is_power_of_two() {
                return conflict(name, format!("found {}; expected a power of two", values.whole(name)));
            }
        }
        if unit > page {
            let message = format!("found {}; more than a page, {}", unit / 2, page / 2);
            return conflict("mapping_unit_kib", message);
        }
        let stripe_units = (stripe / unit) as u32;
        let pages_per_block = values.whole("pages_per_block") as u32;
        let per_superblock = u64::from(dies) * u64::from(stripe_units) * u64::from(pages_per_block);
        let logical = capacity.div_ceil(unit);
        let physical = (logical as f64 * (1.0 + values.given("overprovision_percent") / 100.0)) as u64;
        let superblocks = physical.div_ceil(per_superblock);
        let direct = values.text("medium") == "3dxpoint";
        if superblocks * per_superblock >= u64::from(u32::MAX) {
            return conflict("mapping_unit_kib", format!("found {}; too small for this capacity", unit / 2));
        }
        if !direct && superblocks < logical.div_ceil(per_superblock) + SPARE_MIN {
            return conflict(
                "overprovision_percent",
                format!(
                    "found {}; leaves fewer than {SPARE_MIN} spare superblocks of {} MiB (smaller pages_per_block, or more)",
                    values.given("overprovision_percent"),
                    per_superblock * unit / 2_048
                ),
            );
        }
        let collect = (values.whole("collect_kib") * 2).div_ceil(unit);
        if collect > per_superblock {
            let message = format!(
                "found {}; more than a superblock, {} KiB",
                values.whole("collect_kib"),
                per_superblock * unit / 2
            );
            return conflict("collect_kib", message);
        }
        let buffer_sectors = values.whole("write_buffer_kib") * 2;
        if !direct && buffer_sectors < 2 * stripe {
            let message =
                format!("found {}; expected two stripes of {} KiB or more", buffer_sectors / 2, stripe / 2);
            return conflict("write_buffer_kib", message);
        }
        Ok(SsdConfig {
            capacity_sectors: capacity,
            channels,
            dies,
            channel_of: (0..dies).map(|die| die % channels).collect(),
            unit_sectors: unit,
            unit_shift: unit.trailing_zeros(),
            page_units: (page / unit) as u32,
            stripe_units,
            stripe_shift: stripe_units.trailing_zeros(),
            pages_per_block,
            superblocks: superblocks as u32,
            collect_units: collect as u32,
            paced: values.flag("paced"),
            logical_units: logical as u32,
            filled_units: (logical as f64 * values.given("fill_percent") / 100.0) as u32,
            preconditioned: values.flag("preconditioned"),
            read_ns: values.list_us("read_us"),
            program_ns: values.list_us("program_us"),
            erase_ns: values.ms("erase_ms"),
            suspend_ns: values.us("suspend_us"),
            channel_fx: fx(values.given("channel_mb_s")),
            link_fx: fx(values.given("link_mb_s")),
            command_ns: values.us("command_us"),
            link_command_ns: values.us("link_command_us"),
            read_latency_ns: values.us("read_latency_us"),
            write_latency_ns: values.us("write_latency_us"),
            write_command_ns: values.us("write_command_us"),
            stream_read: Pace::new(values, "stream_read_us", "stream_read_mb_s", 0),
            stream_write: Pace::new(
                values,
                "stream_write_us",
                "stream_write_mb_s",
                values.us("write_command_us"),
            ),
            read_ahead_stripes: (values.whole("read_ahead_kib") * 2).div_ceil(stripe) as u32,
            write_cache: values.flag("write_cache"),
            buffer_sectors,
            protected: values.flag("power_loss_protection"),
            flush_ns: values.us("flush_us"),
            direct,
            slc_units_empty: values.whole("slc_cache_mib") * 2_048 / unit,
            slc_units_full: values.whole("slc_cache_full_mib") * 2_048 / unit,
            slc_program_ns: values.us("slc_program_us"),
            slc_idle_ns: values.ms("slc_idle_ms"),
        })
    }

    /// The same disk with fewer pages per block: see [`super::super::DiskModel`].
    pub fn shrink(&mut self, divisor: u64) {
        let pages = u64::from(self.pages_per_block);
        let divisor = divisor.min(pages);
        self.pages_per_block = (pages / divisor) as u32;
        let scale = |n: u64| n * u64::from(self.pages_per_block) / pages;
        self.logical_units = scale(u64::from(self.logical_units)) as u32;
        self.filled_units = scale(u64::from(self.filled_units)) as u32;
        self.capacity_sectors = u64::from(self.logical_units) * self.unit_sectors;
        self.erase_ns = scale(self.erase_ns);
        self.slc_units_empty = scale(self.slc_units_empty);
        self.slc_units_full = scale(self.slc_units_full);
        // A collection stays the same part of a superblock.
        self.collect_units = self.collect_units.min(self.dies * self.stripe_units * self.pages_per_block);
    }

    /// The die of a physical unit.
    #[inline]
    pub fn die(&self, physical: u32) -> u32 {
        remainder(physical >> self.stripe_shift, self.dies)
    }

    /// The channel of a die.
    #[inline]
    pub fn channel(&self, die: u32) -> usize {
        self.channel_of[die as usize] as usize
    }

    /// The time in `times` for a physical unit: the kinds of pages that share cells follow one another.
    #[inline]
    pub fn of_page(&self, times: &[u64], physical: u32) -> u64 {
        match times {
            [one] => *one,
            _ => {
                let page = (physical >> self.stripe_shift) / self.dies;
                times[remainder(page, times.len() as u32) as usize]
            }
        }
    }
}

/// `number` % `divisor`, with a mask instead of a division if possible: most disks' counts are powers of two.
#[inline]
fn remainder(number: u32, divisor: u32) -> u32 {
    let mask = divisor.wrapping_sub(1);
    if divisor & mask == 0 { number & mask } else { number % divisor }
}
