//! Direction, block sizes, order of offsets.

use super::super::value;
use super::{Draft, Given, JobOption, Refusal, Takes};
use crate::workload::spec::{Direction, Distribution, PerDirection, Rw, Sequencer, Zone};

/// The largest I/O unit: a queue entry has 32 bits, with room to add two.
const BLOCK_MAX: u64 = 1 << 30;

/// fio's limits on the parts of a split (`BSSPLIT_MAX`, `ZONESPLIT_MAX`).
const SPLIT_MAX: usize = 64;
const ZONES_MAX: usize = 256;

/// fio's parameters of a distribution that is given without one (`FIO_DEF_ZIPF`, `FIO_DEF_PARETO`).
const ZIPF_DEFAULT: f64 = 1.1;
const PARETO_DEFAULT: f64 = 0.2;

const RW_WORDS: &[&str] = &[
    "read",
    "write",
    "trim",
    "randread",
    "randwrite",
    "randtrim",
    "rw",
    "readwrite",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];

pub(super) const OPTIONS: &[JobOption] = &[
    JobOption::new(
        "rw",
        Takes::WordAnd(RW_WORDS, set_rw),
        "read",
        "direction and order; rand*:N keeps to one random offset for N I/Os, others skip N bytes per I/O",
    )
    .alias(&["readwrite"]),
    JobOption::new(
        "rw_sequencer",
        Takes::Word(&["sequential", "identical"], |d, word| {
            d.spec.access.sequencer =
                if word == "identical" { Sequencer::Identical } else { Sequencer::Sequential };
            Ok(())
        }),
        "sequential",
        "with rw=rand*:N: whether those N I/Os follow one another or hit the same offset",
    ),
    JobOption::new(
        "bs",
        Takes::Sizes(1, BLOCK_MAX, |d, sizes| lay(&mut d.block, &sizes, |bytes| bytes as u32)),
        "4096",
        "size of an I/O unit",
    )
    .alias(&["blocksize"]),
    JobOption::new(
        "bsrange",
        Takes::SizeRanges(1, BLOCK_MAX, |d, ranges| {
            lay(&mut d.block_range, &ranges, |(low, high)| Some((low as u32, high as u32)));
        }),
        "",
        "sizes of I/O units, evenly spread over a range; multiples of its lower end",
    )
    .alias(&["blocksize_range"]),
    JobOption::new(
        "bssplit",
        Takes::Text(set_bssplit),
        "",
        "sizes of I/O units with percentages, as in 4k/60:64k/40; blank percentages share the rest",
    ),
    JobOption::new(
        "bs_unaligned",
        Takes::Flag(|d, on| d.unaligned = on),
        "0",
        "with bsrange: any size of the range, not only multiples of its lower end",
    )
    .alias(&["blocksize_unaligned"]),
    JobOption::new(
        "bs_is_seq_rand",
        Takes::Bool(|d, on| d.spec.access.sizes_by_randomness = on),
        "0",
        "the read block sizes are for sequential I/O, the write block sizes for random I/O",
    ),
    JobOption::new(
        "ba",
        Takes::Sizes(1, BLOCK_MAX, |d, sizes| lay(&mut d.align, &sizes, |bytes| Some(bytes as u32))),
        "",
        "alignment of random offsets; turns the random map off if it is not the block size",
    )
    .alias(&["blockalign"]),
    JobOption::new(
        "rwmixread",
        Takes::Count(0, 100, |d, percent| d.spec.access.read_percent = percent as u32),
        "50",
        "percentage of reads in rw=rw and rw=randrw",
    ),
    JobOption::new(
        "rwmixwrite",
        Takes::Count(0, 100, |d, percent| d.spec.access.read_percent = 100 - percent as u32),
        "50",
        "percentage of writes in rw=rw and rw=randrw; the later of this and rwmixread counts",
    ),
    JobOption::new(
        "percentage_random",
        Takes::Counts(0, 100, |d, percent| {
            lay(&mut d.spec.access.percentage_random, &percent, |n| n as u32);
        }),
        "100",
        "percentage of a random workload's I/Os that are random; the others follow the one before",
    ),
    JobOption::new(
        "random_distribution",
        Takes::WordAnd(&["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"], set_distribution),
        "random",
        "which blocks are hit more often: zipf:THETA, pareto:H, normal:DEV, zoned:ACCESS/WIDTH:...",
    ),
    JobOption::new(
        "norandommap",
        Takes::Flag(|d, on| d.no_random_map = on),
        "0",
        "draw random blocks independently; otherwise each is hit once per pass",
    ),
    JobOption::new(
        "softrandommap",
        Takes::Bool(super::ignore::flag),
        "0",
        "go on without a random map if there is no memory for it",
    )
    .no_effect("the map always fits"),
    JobOption::new(
        "random_generator",
        Takes::Word(&["tausworthe", "lfsr", "tausworthe64"], |d, word| {
            d.lfsr = word == "lfsr";
            d.spec.access.fio_numbers = word == "tausworthe";
            Ok(())
        }),
        "",
        "tausworthe: the same blocks, reads and writes as fio's; otherwise the numbers are xoshiro256++; \
         lfsr hits each block once even with norandommap",
    ),
    JobOption::new(
        "randseed",
        Takes::Count(0, u64::MAX, |d, seed| d.spec.access.randseed = Some(seed)),
        "",
        "seed of this job's random numbers, in place of the run's --seed; without it --seed decides",
    ),
    JobOption::new(
        "randrepeat",
        Takes::Bool(|d, on| d.spec.access.randrepeat = on),
        "1",
        "loops repeat the first pass's offsets; runs with the same --seed are always the same",
    ),
    JobOption::new(
        "allrandrepeat",
        Takes::Bool(super::ignore::flag),
        "0",
        "seed every random generator, not only that of the offsets",
    )
    .no_effect("all random numbers come from the run's seed"),
    JobOption::new(
        "number_ios",
        Takes::Count(0, u64::MAX, |d, n| d.spec.access.number_ios = (n > 0).then_some(n)),
        "0",
        "end the job after this many I/Os, times `loops`; 0 for no limit, and without effect in a time-based job",
    ),
];

/// Replaces the values of the directions that are given.
pub(super) fn lay<T, U: Clone>(target: &mut PerDirection<U>, given: &Given<T>, convert: impl Fn(T) -> U)
where
    T: Copy,
{
    for direction in Direction::ALL {
        if let Some(value) = given[direction] {
            target[direction] = convert(value);
        }
    }
}

fn set_rw(draft: &mut Draft, word: &str, more: Option<&str>) -> Result<(), Refusal> {
    let rw = Rw::NAMES.iter().find(|(name, _)| *name == word).map_or(Rw::Read, |(_, rw)| *rw);
    let access = &mut draft.spec.access;
    access.rw = rw;
    access.ios_per_offset = 1;
    access.sequential_skip_bytes = 0;
    let Some(more) = more else { return Ok(()) };
    if rw.is_random() {
        let count = more.parse::<u32>().ok().filter(|n| *n > 0);
        access.ios_per_offset =
            count.ok_or_else(|| Refusal::Expected(format!("{word}:N with N I/Os per random offset")))?;
    } else {
        let skip = value::integer(more, draft.kb_base).and_then(|n| i64::try_from(n).ok());
        access.sequential_skip_bytes = skip.filter(|n| n.unsigned_abs() < 1 << 62).ok_or_else(|| {
            Refusal::Expected(format!("{word}:N with N bytes to skip behind each I/O, such as {word}:4k"))
        })?;
    }
    Ok(())
}

/// `a/b` pairs; blank second halves are `None`.
type Pairs<A, B> = Vec<(A, Option<B>)>;

/// `a/b:c/d,...` for each direction: pairs with an optional second half.
fn split<A, B>(
    text: &str,
    most: usize,
    first: impl Fn(&str) -> Option<A>,
    second: impl Fn(&str) -> Option<B>,
) -> Option<Given<Pairs<A, B>>>
where
    A: Clone,
    B: Clone,
{
    value::per_direction(text, |list| {
        let mut pairs = Vec::new();
        for entry in list.split(':') {
            let (a, b) = entry.split_once('/').unwrap_or((entry, ""));
            pairs.push((first(a)?, if b.is_empty() { None } else { Some(second(b)?) }));
        }
        (pairs.len() <= most).then_some(pairs)
    })
}

/// A percentage, 0 to 100.
fn percentage(text: &str) -> Option<u32> {
    text.trim_end_matches('%').parse().ok().filter(|p| *p <= 100)
}

/// Percentages; the rest is shared evenly among the blank ones. Returned as weights with a sum that
/// is a multiple of 100 unless none is blank; `None` above 100 %.
fn fill_blanks(percentages: &[Option<u32>]) -> Option<Vec<u32>> {
    let given: u32 = percentages.iter().flatten().sum();
    let blanks = percentages.iter().filter(|p| p.is_none()).count() as u32;
    let rest = 100_u32.checked_sub(given)?;
    let scale = blanks.max(1);
    Some(percentages.iter().map(|p| p.map_or(rest, |p| p * scale)).collect())
}

fn set_bssplit(draft: &mut Draft, text: &str) -> Result<(), Refusal> {
    let expected = || {
        Refusal::Expected(format!(
            "up to {SPLIT_MAX} of SIZE/PERCENT with colons between them, 100 % at most, as READ,WRITE,TRIM or one for all"
        ))
    };
    let base = draft.kb_base;
    let size = |t: &str| value::bytes(t, base).filter(|b| (1..=BLOCK_MAX).contains(b)).map(|b| b as u32);
    let lists = split(text, SPLIT_MAX, size, percentage).ok_or_else(expected)?;
    for direction in Direction::ALL {
        let Some(list) = &lists[direction] else { continue };
        let percentages: Vec<_> = list.iter().map(|(_, percent)| *percent).collect();
        let mut weights = fill_blanks(&percentages).ok_or_else(expected)?;
        // As in fio, the largest share gets the difference to 100 %.
        let sum: u32 = weights.iter().sum();
        if percentages.iter().all(Option::is_some)
            && let Some(largest) = weights.iter_mut().max()
        {
            *largest += 100 - sum;
        }
        draft.block_split[direction] =
            Some(list.iter().zip(weights).map(|((size, _), weight)| (*size, weight)).collect());
    }
    Ok(())
}

fn set_distribution(draft: &mut Draft, word: &str, more: Option<&str>) -> Result<(), Refusal> {
    let expected = |what: &str| Refusal::Expected(what.to_owned());
    let parameter = |default: f64| -> Option<(f64, Option<f64>)> {
        let Some(more) = more else { return Some((default, None)) };
        let (value, center) = match more.split_once(':') {
            Some((value, center)) => (value, Some(center.parse::<f64>().ok()?)),
            None => (more, None),
        };
        let value = value.parse::<f64>().ok().filter(|v| v.is_finite())?;
        center.is_none_or(|c| (0.0..=1.0).contains(&c)).then_some((value, center))
    };
    draft.spec.access.distribution = match word {
        "zipf" => {
            let (theta, center) = parameter(ZIPF_DEFAULT)
                .filter(|(theta, _)| *theta > 0.0 && *theta != 1.0)
                .ok_or_else(|| expected("zipf:THETA[:CENTER], THETA above 0 and not 1, CENTER 0 to 1"))?;
            Distribution::Zipf { theta, center }
        }
        "pareto" => {
            let (h, center) = parameter(PARETO_DEFAULT)
                .filter(|(h, _)| *h > 0.0 && *h < 1.0)
                .ok_or_else(|| expected("pareto:H[:CENTER], H between 0 and 1, CENTER 0 to 1"))?;
            Distribution::Pareto { h, center }
        }
        "normal" => {
            let (deviation_percent, center) = parameter(0.0)
                .filter(|(deviation, _)| (0.0..100.0).contains(deviation))
                .ok_or_else(|| expected("normal:DEV[:CENTER], DEV 0 to below 100, CENTER 0 to 1"))?;
            Distribution::Normal { deviation_percent, center: center.unwrap_or(0.5) }
        }
        "zoned" => {
            let lists = zones(more, |text| percentage(text).map(u64::from), share_the_rest)?;
            for direction in Direction::ALL {
                if lists[direction].iter().map(|zone| zone.width).sum::<u64>() > 100 {
                    return Err(expected_zones());
                }
            }
            Distribution::Zoned(lists)
        }
        "zoned_abs" => {
            let base = draft.kb_base;
            let width = |t: &str| value::bytes(t, base).filter(|b| *b > 0);
            Distribution::ZonedAbs(zones(more, width, |widths| widths.iter().copied().collect())?)
        }
        _ => Distribution::Random,
    };
    Ok(())
}

fn expected_zones() -> Refusal {
    Refusal::Expected(format!(
        "up to {ZONES_MAX} of ACCESS/WIDTH with colons between them; the accesses are percentages that add \
         up to 100, widths in percent to 100 at most; blank ones share the rest"
    ))
}

/// Widths in percent; the rest is shared evenly among the blank ones, rounded down as in fio.
fn share_the_rest(widths: &[Option<u64>]) -> Option<Vec<u64>> {
    let rest = 100_u64.checked_sub(widths.iter().flatten().sum())?;
    let blanks = widths.iter().filter(|width| width.is_none()).count() as u64;
    Some(widths.iter().map(|width| width.unwrap_or_else(|| rest / blanks)).collect())
}

fn zones(
    text: Option<&str>,
    width: impl Fn(&str) -> Option<u64>,
    fill: impl Fn(&[Option<u64>]) -> Option<Vec<u64>>,
) -> Result<PerDirection<Vec<Zone>>, Refusal> {
    let lists = split(text.unwrap_or(""), ZONES_MAX, percentage, width).ok_or_else(expected_zones)?;
    let mut result = PerDirection::all(Vec::new());
    for direction in Direction::ALL {
        let Some(list) = &lists[direction] else { continue };
        let access: u32 = list.iter().map(|(access, _)| *access).sum();
        let widths: Vec<_> = list.iter().map(|(_, width)| *width).collect();
        let widths = fill(&widths).filter(|_| access == 100).ok_or_else(expected_zones)?;
        let zone = |((access, _), width): (&(u32, _), u64)| Zone { access_percent: *access, width };
        result[direction] = list.iter().zip(widths).map(zone).collect();
    }
    Ok(result)
}
