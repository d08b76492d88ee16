//! The places of sectors by a drive's own map: zones with their own skews, spare sectors or tracks, and
//! defective places that are skipped (slipped).
//!
//! The addresses of a zone consist of pieces without a gap on the medium. A piece ends before spare sectors
//! or a slipped place.

use super::super::keys::{Conflict, Values, conflict};
use super::geometry::Location;

/// Addresses from `logical` on are at places from `physical` on, both counted from the zone's start.
#[derive(Clone, Copy, Debug)]
struct Piece {
    logical: u64,
    physical: u64,
}

#[derive(Clone, Debug)]
struct Zone {
    first_lba: u64,
    reserved: u64,
    first_cylinder: u32,
    sectors_per_track: u64,
    /// In sectors of the zone's tracks.
    track_skew: u64,
    cylinder_skew: u64,
    offset: u64,
    /// Nanoseconds per sector, times 2^32.
    sector_fx: u64,
    pieces: Vec<Piece>,
}

/// The whole map.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    zones: Vec<Zone>,
    heads: u64,
    /// Odd cylinders of a zone use their heads from the last to the first.
    to_and_fro: bool,
    turn_ns: u64,
}

/// The places of spares, and the spared unit.
struct Sparing {
    /// Number of places that share spares; none: the zone.
    unit: Option<u64>,
    spare: u64,
    /// Slips accumulate from unit to unit.
    adds_up: bool,
}

/// The pieces of a zone's `count` places, from its slipped ones, which rise.
fn pieces(count: u64, sparing: &Sparing, slipped: &[u64]) -> Vec<Piece> {
    let unit = sparing.unit.unwrap_or(u64::MAX);
    let used = if sparing.unit.is_some() { unit - sparing.spare } else { unit };
    let mut all: Vec<Piece> = Vec::new();
    let mut add = |logical: u64, physical: u64| {
        if all.last().is_none_or(|last| physical - last.physical != logical - last.logical) {
            all.push(Piece { logical, physical });
        }
    };
    let (mut number, mut logical) = (0, 0);
    while logical < count {
        let first = number * unit;
        let before = if sparing.adds_up { slipped.partition_point(|at| *at < first) as u64 } else { 0 };
        let within = slipped.iter().filter(|at| (first..first.saturating_add(unit)).contains(at));
        let mut shift = before;
        add(logical, first + shift);
        for at in within {
            // The place in the unit from which on it is skipped.
            let from = (at - first).saturating_sub(shift);
            if from >= used {
                break;
            }
            shift += 1;
            add(logical + from, first + from + shift);
        }
        logical = logical.saturating_add(used);
        number += 1;
    }
    all
}

impl Layout {
    /// From the key `zone_layout`, if the disk has it.
    pub fn new(values: &Values, heads: u32, turn_ns: u64) -> Result<Option<Layout>, Conflict> {
        let Some(rows) = values.rows("zone_layout") else { return Ok(None) };
        let capacity = values.whole("capacity_sectors");
        let tracks = values.text("sparing") == "zone_tracks";
        let mut zones: Vec<Zone> = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let whole: Vec<u64> = row.iter().map(|number| *number as u64).collect();
            let [first_cylinder, per_track, first_lba, track_skew, cylinder_skew, offset, reserved, spare] =
                whole[..]
            else {
                return conflict("zone_layout", "expected rows of 8 numbers");
            };
            let end = rows.get(index + 1).map_or(capacity, |next| next[2] as u64);
            let cylinder = per_track * u64::from(heads);
            let unit = match values.text("sparing") {
                "track" => Some(per_track),
                "cylinders" => Some(cylinder * values.whole("sparing_cylinders")),
                "disk" => Some(cylinder),
                _ => None,
            };
            let fits = end > first_lba
                && (16..=20_000).contains(&per_track)
                && unit.is_none_or(|unit| unit > spare)
                && first_cylinder < 10_000_000
                && zones.last().map_or(first_lba == 0, |last| {
                    last.first_lba < first_lba && u64::from(last.first_cylinder) < first_cylinder
                });
            if !fits {
                let message = format!(
                    "zone {index}: expected rising cylinders and addresses from 0 to capacity_sectors, 16 to 20000 sectors a track, fewer spare sectors than sectors"
                );
                return conflict("zone_layout", message);
            }
            let slips = values.pairs("slipped").unwrap_or_default();
            let mut slipped: Vec<u64> = slips
                .iter()
                .filter(|(zone, _)| *zone as usize == index)
                .map(|(_, place)| *place as u64)
                .collect();
            slipped.sort_unstable();
            slipped.dedup();
            let sparing = Sparing { unit, spare, adds_up: values.text("sparing") == "disk" };
            let count = end - first_lba + reserved;
            // Whole tracks are skipped like sectors.
            let step = if tracks { per_track } else { 1 };
            let mut pieces = pieces(count.div_ceil(step), &sparing, &slipped);
            for piece in &mut pieces {
                *piece = Piece { logical: piece.logical * step, physical: piece.physical * step };
            }
            zones.push(Zone {
                first_lba,
                reserved,
                first_cylinder: first_cylinder as u32,
                sectors_per_track: per_track,
                track_skew,
                cylinder_skew,
                offset,
                sector_fx: (turn_ns << 32) / per_track,
                pieces,
            });
        }
        let to_and_fro = values.text("mapping") == "serpentine_heads";
        Ok(Some(Layout { zones, heads: u64::from(heads), to_and_fro, turn_ns }))
    }

    /// The number of cylinders up to the last one with data.
    pub fn cylinders(&self, capacity: u64) -> u32 {
        self.locate(capacity - 1).cylinder + 1
    }

    /// The longest time of a sector, in nanoseconds times 2^32, and the shortest track.
    pub fn slowest(&self) -> (u64, u64) {
        let slowest = self.zones.iter().map(|zone| zone.sector_fx).max().unwrap_or(0);
        (slowest, self.zones.iter().map(|zone| zone.sectors_per_track).min().unwrap_or(1))
    }

    /// The shortest time of a sector, in nanoseconds times 2^32.
    pub fn fastest_sector_fx(&self) -> u64 {
        self.zones.iter().map(|zone| zone.sector_fx).min().unwrap_or(0)
    }

    pub fn locate(&self, lba: u64) -> Location {
        let zone = &self.zones[self.zones.partition_point(|zone| zone.first_lba <= lba) - 1];
        let logical = lba - zone.first_lba + zone.reserved;
        let next = zone.pieces.partition_point(|piece| piece.logical <= logical);
        let piece = zone.pieces[next - 1];
        let physical = logical - piece.logical + piece.physical;
        let (track, sector) = (physical / zone.sectors_per_track, physical % zone.sectors_per_track);
        let (cylinder, place) = (track / self.heads, track % self.heads);
        let head = if self.to_and_fro && cylinder % 2 == 1 { self.heads - 1 - place } else { place };
        let switches = cylinder * (self.heads - 1) + place;
        let skews = zone.offset + cylinder * zone.cylinder_skew + switches * zone.track_skew;
        let track_angle = ((skews % zone.sectors_per_track) * zone.sector_fx) >> 32;
        let on_piece = zone.pieces.get(next).map_or(u64::MAX, |next| next.logical - logical);
        let run = on_piece.min(zone.sectors_per_track - sector);
        let first = (zone.first_cylinder as u64 + cylinder) as u32;
        Location::on_track(
            first,
            head as u32,
            track_angle,
            sector as u32,
            run as u32,
            zone.sector_fx,
            self.turn_ns,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule applied literally: a place moves by one for every slipped one that it reaches or passes.
    fn by_rule(logical: u64, sparing: &Sparing, slipped: &[u64]) -> u64 {
        let Some(unit) = sparing.unit else {
            return slipped.iter().fold(logical, |at, slip| at + u64::from(at >= *slip));
        };
        let (number, within) = (logical / (unit - sparing.spare), logical % (unit - sparing.spare));
        let first = number * unit;
        let before = slipped.iter().filter(|at| **at < first).count() as u64;
        let mut place = within + if sparing.adds_up { before } else { 0 };
        for slip in slipped.iter().filter(|at| (first..first + unit).contains(at)) {
            place += u64::from(place >= slip - first);
        }
        first + place
    }

    proptest! {
        #[test]
        fn pieces_follow_the_rule_for_spares_and_slips(
            unit in prop::option::of(20u64..80), spare in 0u64..8, adds_up: bool,
            slipped in prop::collection::btree_set(0u64..600, 0..12), count in 1u64..500
        ) {
            let slipped: Vec<u64> = slipped.into_iter().collect();
            let sparing = Sparing { unit, spare, adds_up: adds_up && unit.is_some() };
            let pieces = pieces(count, &sparing, &slipped);
            for logical in 0..count {
                let piece = pieces[pieces.partition_point(|piece| piece.logical <= logical) - 1];
                let found = logical - piece.logical + piece.physical;
                prop_assert_eq!(found, by_rule(logical, &sparing, &slipped), "place {}", logical);
            }
        }
    }
}
