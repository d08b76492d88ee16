//! The place of a sector: zone, cylinder, head and angle.
//!
//! Angles are times: the nanoseconds after the index mark at which a place passes the head. One revolution is
//! a whole number of nanoseconds.

use super::super::keys::{Conflict, Values, conflict};
use super::layout::Layout;

const LOOKUP: usize = 1_024;

#[derive(Clone, Debug)]
struct Zone {
    first_lba: u64,
    first_cylinder: u32,
    cylinders: u32,
    sectors_per_track: u32,
    /// Nanoseconds per sector, times 2^32.
    sector_fx: u64,
    head_skew_ns: u64,
    cylinder_skew_ns: u64,
}

/// The layout of a disk's sectors on its surfaces.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    /// The drive's own map, which replaces the zones.
    layout: Option<Layout>,
    /// The first possible zone of an address divided by 2^shift.
    lookup: Vec<u16>,
    shift: u32,
    heads: u32,
    /// Cylinders of a serpentine band; 0: plain.
    band: u32,
    /// One revolution.
    pub turn_ns: u64,
    pub cylinders: u32,
}

/// A sector's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Location {
    pub cylinder: u32,
    pub head: u32,
    /// The time after the index mark at which its start passes the head.
    pub angle_ns: u32,
    /// The same for the track's first sector.
    track_angle_ns: u32,
    /// Its number on the track, and the number of sectors from here to the track's end.
    sector: u32,
    pub left_on_track: u32,
    /// Nanoseconds per sector, times 2^32.
    pub sector_fx: u64,
}

impl Location {
    /// Sector `sector` of a track with its first sector at `track_angle_ns`; from it on, `run` sectors follow
    /// each other.
    pub fn on_track(
        cylinder: u32,
        head: u32,
        track_angle_ns: u64,
        sector: u32,
        run: u32,
        sector_fx: u64,
        turn_ns: u64,
    ) -> Location {
        let angle = track_angle_ns + ((u64::from(sector) * sector_fx) >> 32);
        let over = if angle >= turn_ns { turn_ns } else { 0 };
        let (angle_ns, track_angle_ns) = ((angle - over) as u32, track_angle_ns as u32);
        Location { cylinder, head, angle_ns, track_angle_ns, sector, left_on_track: run, sector_fx }
    }
}

impl Geometry {
    pub fn new(values: &Values) -> Result<Geometry, Conflict> {
        let capacity = values.whole("capacity_sectors");
        let heads = values.whole("heads") as u32;
        let turn_ns = (60e9 / values.given("rpm")).round() as u64;
        if let Some(layout) = Layout::new(values, heads, turn_ns)? {
            let cylinders = layout.cylinders(capacity);
            return Ok(Geometry {
                zones: Vec::new(),
                lookup: Vec::new(),
                shift: 0,
                heads,
                band: 0,
                turn_ns,
                cylinders,
                layout: Some(layout),
            });
        }
        let layout = match values.pairs("zone_table") {
            Some(table) => table.iter().map(|(c, s)| (*c as u32, *s as u32)).collect(),
            None => linear_zones(values, capacity, heads)?,
        };
        let mut zones: Vec<Zone> = Vec::with_capacity(layout.len());
        let (mut lba, mut cylinder) = (0, 0);
        for (cylinders, sectors_per_track) in layout {
            let sector_fx = (turn_ns << 32) / u64::from(sectors_per_track);
            // A skew is a whole number of sectors.
            let skew = |name| {
                let sectors = ((values.ms(name) << 32) as u128).div_ceil(u128::from(sector_fx)) as u64;
                (sectors * sector_fx) >> 32
            };
            zones.push(Zone {
                first_lba: lba,
                first_cylinder: cylinder,
                cylinders,
                sectors_per_track,
                sector_fx,
                head_skew_ns: skew("track_skew_ms"),
                cylinder_skew_ns: skew("cylinder_skew_ms"),
            });
            lba += u64::from(cylinders) * u64::from(heads) * u64::from(sectors_per_track);
            cylinder += cylinders;
        }
        if lba < capacity {
            let message = format!("the zones hold {lba} sectors, fewer than capacity_sectors, {capacity}");
            return conflict("zone_table", message);
        }
        let shift = (u64::BITS - (capacity / LOOKUP as u64).leading_zeros()).max(1);
        let first = |i: u64| zones.partition_point(|z| z.first_lba <= i << shift) as u16 - 1;
        let lookup = (0..=capacity >> shift).map(first).collect();
        let band = match values.text("mapping") {
            "serpentine" => values.whole("serpentine_cylinders") as u32,
            _ => 0,
        };
        Ok(Geometry { lookup, shift, heads, band, turn_ns, cylinders: cylinder, zones, layout: None })
    }

    /// Cylinder and head of a zone's track, and the number of head and cylinder changes between the zone's
    /// first track and it.
    fn track(&self, zone: &Zone, track: u32) -> (u32, u32, u64, u64) {
        if self.band == 0 {
            let cylinder = track / self.heads;
            return (cylinder, track % self.heads, u64::from(track - cylinder), u64::from(cylinder));
        }
        let band = track / (self.band * self.heads);
        let width = self.band.min(zone.cylinders - band * self.band);
        let within = track - band * self.band * self.heads;
        let (head, step) = (within / width, within % width);
        let cylinder = band * self.band + if head % 2 == 0 { step } else { width - 1 - step };
        let head_changes = u64::from(band * (self.heads - 1) + head);
        (cylinder, head, head_changes, u64::from(track) - head_changes)
    }

    #[inline]
    fn zone(&self, lba: u64) -> &Zone {
        let slot = ((lba >> self.shift) as usize).min(self.lookup.len() - 1);
        let mut index = usize::from(self.lookup[slot]);
        while self.zones.get(index + 1).is_some_and(|next| next.first_lba <= lba) {
            index += 1;
        }
        &self.zones[index]
    }

    /// The longest time of any sector, in nanoseconds times 2^32, and the largest number of tracks that this
    /// many sectors fill.
    pub fn slowest(&self, sectors: u64) -> (u64, u64) {
        if let Some((slowest, shortest)) = self.layout.as_ref().map(Layout::slowest) {
            return (slowest, sectors / shortest + 1);
        }
        let slowest = self.zones.iter().map(|zone| zone.sector_fx).max().unwrap_or(0);
        let shortest = self.zones.iter().map(|zone| u64::from(zone.sectors_per_track)).min().unwrap_or(1);
        (slowest, sectors / shortest + 1)
    }

    /// The shortest time of any sector.
    pub fn fastest_sector_ns(&self) -> u64 {
        let fastest = self.zones.iter().map(|zone| zone.sector_fx).min();
        let layout = self.layout.as_ref().map(Layout::fastest_sector_fx);
        fastest.or(layout).unwrap_or(0) >> 32
    }

    /// The largest number of cylinders between a track and the next.
    pub fn step_max(&self) -> u32 {
        self.band + 1
    }

    /// The place of sector `lba`.
    #[inline]
    pub fn locate(&self, lba: u64) -> Location {
        if let Some(layout) = &self.layout {
            return layout.locate(lba);
        }
        let zone = self.zone(lba);
        let within = lba - zone.first_lba;
        let (track, sector) = match u32::try_from(within) {
            Ok(within) => (within / zone.sectors_per_track, within % zone.sectors_per_track),
            Err(_) => {
                let per_track = u64::from(zone.sectors_per_track);
                ((within / per_track) as u32, (within % per_track) as u32)
            }
        };
        let (cylinder, head, head_changes, cylinder_changes) = self.track(zone, track);
        let skew = head_changes * zone.head_skew_ns + cylinder_changes * zone.cylinder_skew_ns;
        let track = Location {
            cylinder: zone.first_cylinder + cylinder,
            head,
            angle_ns: 0,
            track_angle_ns: (skew % self.turn_ns) as u32,
            sector: 0,
            left_on_track: zone.sectors_per_track,
            sector_fx: zone.sector_fx,
        };
        self.along_track(track, sector)
    }

    /// The number of sectors before `lba`, which is at `place`, that pass the head in the last `ns` before it:
    /// at most those from the track's start.
    pub fn passed_before(&self, lba: u64, place: &Location, ns: u64) -> u32 {
        let passed = ((ns.min(self.turn_ns) << 32) / place.sector_fx) as u32;
        let mut passed = passed.min(place.sector).min(u32::try_from(lba).unwrap_or(u32::MAX));
        // Places without an address lie between: slipped and reserved ones.
        while passed > 0 {
            let first = self.locate(lba - u64::from(passed));
            if (first.cylinder, first.head) == (place.cylinder, place.head) {
                break;
            }
            passed -= 1;
        }
        passed
    }

    /// The place `sectors` after `from` on the same track.
    #[inline]
    pub fn along_track(&self, from: Location, sectors: u32) -> Location {
        let sector = from.sector + sectors;
        let angle = u64::from(from.track_angle_ns) + ((u64::from(sector) * from.sector_fx) >> 32);
        let over = if angle >= self.turn_ns { self.turn_ns } else { 0 };
        let left_on_track = from.left_on_track - sectors;
        Location { angle_ns: (angle - over) as u32, sector, left_on_track, ..from }
    }
}

/// Zones of equal width with sectors per track on a line between the outer and the inner edge, and as many
/// cylinders as the capacity needs.
fn linear_zones(values: &Values, capacity: u64, heads: u32) -> Result<Vec<(u32, u32)>, Conflict> {
    let (Some(outer), Some(inner)) =
        (values.number("outer_sectors_per_track"), values.number("inner_sectors_per_track"))
    else {
        return conflict(
            "zones",
            "expected zone_table, or outer_sectors_per_track and inner_sectors_per_track",
        );
    };
    if inner > outer {
        let message = format!("found {inner}; more than outer_sectors_per_track, {outer}");
        return conflict("inner_sectors_per_track", message);
    }
    let zones = values.whole("zones");
    let step = (outer - inner) / (zones.max(2) - 1) as f64;
    let per_track: Vec<u64> = (0..zones).map(|i| (outer - step * i as f64).round() as u64).collect();
    let per_cylinder_of_each = u64::from(heads) * per_track.iter().sum::<u64>();
    let cylinders = capacity.div_ceil(per_cylinder_of_each);
    if cylinders * zones > 10_000_000 {
        return conflict(
            "capacity_sectors",
            format!("found {capacity}; needs more than 10 million cylinders"),
        );
    }
    Ok(per_track.iter().map(|s| (cylinders as u32, *s as u32)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::DiskModel;
    use super::super::super::testing::HDD;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn neighbouring_sectors_touch_and_a_track_holds_its_zones_number(
            serpentine: bool, lba in 0u64..1_000_000, band in 2u32..50
        ) {
            let mapping = if serpentine { "serpentine" } else { "plain" };
            let model = DiskModel::parse(HDD, "t").unwrap()
                .with_override("mapping", mapping).unwrap()
                .with_override("serpentine_cylinders", &band.to_string()).unwrap();
            let geometry = &model.hdd().geometry;
            let (here, next) = (geometry.locate(lba), geometry.locate(lba + 1));
            if here.left_on_track > 1 {
                prop_assert_eq!((here.cylinder, here.head), (next.cylinder, next.head));
                prop_assert_eq!(next.left_on_track, here.left_on_track - 1);
                let step = (u64::from(next.angle_ns) + geometry.turn_ns - u64::from(here.angle_ns)) % geometry.turn_ns;
                prop_assert!(step.abs_diff(here.sector_fx >> 32) <= 1);
            } else {
                prop_assert_ne!((here.cylinder, here.head), (next.cylinder, next.head));
            }
        }
    }

    #[test]
    fn each_zone_begins_with_a_track_of_its_own_number_of_sectors() {
        let model = DiskModel::parse(HDD, "t").unwrap();
        let geometry = &model.hdd().geometry;
        let (mut first, mut cylinder) = (0, 0);
        for sectors in [500, 450, 400, 350, 300] {
            let place = geometry.locate(first);
            assert_eq!((place.cylinder, place.head, place.left_on_track), (cylinder, 0, sectors));
            // A million sectors over three heads are 167 cylinders of each zone.
            (first, cylinder) = (first + 167 * 3 * u64::from(sectors), cylinder + 167);
            if first < 1_000_000 {
                let last = geometry.locate(first - 1);
                assert_eq!((last.cylinder, last.head, last.left_on_track), (cylinder - 1, 2, 1));
            }
        }
    }

    #[test]
    fn a_track_begins_later_by_the_skews_of_all_changes_before_it() {
        let model = DiskModel::parse(HDD, "t").unwrap();
        let begins_us = |track: u64| model.hdd().geometry.locate(track * 500).angle_ns / 1_000;
        // 0.8 ms for a head and 1 ms for a cylinder, rounded up to whole sectors of 16.7 us.
        for (track, skew_us) in [(0, 0), (1, 800), (2, 1_600), (3, 2_600), (4, 3_400)] {
            let most = skew_us + 17 * track as u32;
            assert!((skew_us..=most).contains(&begins_us(track)), "track {track}: {} us", begins_us(track));
        }
    }

    #[test]
    fn at_the_end_of_a_serpentine_band_the_head_changes_and_the_cylinder_stays() {
        let model = DiskModel::parse(HDD, "t").unwrap().with_override("mapping", "serpentine").unwrap();
        let model = model.with_override("serpentine_cylinders", "10").unwrap();
        let track = |number: u64| {
            let place = model.hdd().geometry.locate(number * 500);
            (place.cylinder, place.head)
        };
        // Ten cylinders inwards with the first head, outwards with the second, inwards with the third.
        let ends = [(0, 0), (9, 0), (9, 1), (0, 1), (0, 2), (9, 2), (10, 0)];
        assert_eq!([0, 9, 10, 19, 20, 29, 30].map(track), ends);
    }

    /// The way back: from cylinder, head and rank on the track to the address.
    #[test]
    fn every_address_has_a_place_of_its_own_and_every_place_an_address() {
        for mapping in ["plain", "serpentine"] {
            let model = DiskModel::parse(HDD, "t").unwrap().with_override("mapping", mapping).unwrap();
            let geometry = &model.hdd().geometry;
            let capacity = model.limits().capacity.0;
            let (mut places, mut tracks) = (HashSet::new(), HashSet::new());
            for lba in 0..capacity.min(300_000) {
                let place = geometry.locate(lba);
                assert!(place.head < geometry.heads && place.cylinder < geometry.cylinders);
                let zone = geometry.zone(lba);
                let rank = zone.sectors_per_track - place.left_on_track;
                assert!(places.insert((place.cylinder, place.head, rank)), "{lba} shares its place");
                tracks.insert((place.cylinder, place.head));
            }
            let full = tracks.len() as u64 - 1;
            let least = geometry.zones.iter().map(|z| u64::from(z.sectors_per_track)).min().unwrap();
            assert!(full * least <= 300_000, "{full} tracks begun for 300,000 sectors");
        }
    }
}
