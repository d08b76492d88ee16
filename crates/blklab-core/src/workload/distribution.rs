//! Skewed choices among `n` things: Zipf, Pareto, normal.
//!
//! The three follow fio 3.33 (`lib/zipf.c`, `lib/gauss.c`), so that a job file has the same skew
//! here: the Zipf generator of Gray et al. (SIGMOD 1994), a self-similar power of a uniform number
//! for Pareto, the mean of twelve uniform numbers for normal. Ranks are hashed into places, also
//! for normal: the popular parts of a file are scattered over it. Logarithms and powers come from
//! `libm`, so that every machine computes the same.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::random;

/// Terms of the Zipf sum that are added one by one; the rest is its integral (Euler-Maclaurin),
/// which is exact to twelve digits from here on.
const ZETA_TERMS: u64 = 1_000;

/// Uniform numbers whose mean approximates a normal distribution.
const NORMAL_TERMS: u64 = 12;

/// A skewed choice among `0..n`.
#[derive(Clone, Debug)]
pub struct Skewed {
    n: u64,
    /// The place of rank 0.
    shift: u64,
    /// Ranks are scattered.
    hashed: bool,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Zipf { alpha: f64, eta: f64, zeta_n: f64, two: f64 },
    Pareto { power: f64 },
    Normal { deviation: u64 },
}

impl Skewed {
    /// Zipf with skew `theta`; rank 0 at `center` of the range, or at a place drawn from
    /// `rng`.
    pub fn zipf(n: u64, theta: f64, center: Option<f64>, rng: &mut Xoshiro256PlusPlus) -> Skewed {
        let shift = place(n, center, rng);
        let two = 1.0 + libm::pow(0.5, theta);
        let zeta_n = zeta(n, theta);
        let eta = (1.0 - libm::pow(2.0 / n as f64, 1.0 - theta)) / (1.0 - two / zeta_n);
        Skewed { n, shift, hashed: true, kind: Kind::Zipf { alpha: 1.0 / (1.0 - theta), eta, zeta_n, two } }
    }

    /// Self-similar with share `h`; as for [`Skewed::zipf`].
    pub fn pareto(n: u64, h: f64, center: Option<f64>, rng: &mut Xoshiro256PlusPlus) -> Skewed {
        let shift = place(n, center, rng);
        Skewed { n, shift, hashed: true, kind: Kind::Pareto { power: libm::log(h) / libm::log(1.0 - h) } }
    }

    /// Bell curve around `center` of the range; `deviation_percent` widens it.
    pub fn normal(n: u64, deviation_percent: f64, center: f64) -> Skewed {
        let wanted = libm::ceil(n as f64 * deviation_percent / 100.0) as u64;
        let from_middle = n as f64 * (center - 0.5);
        let shift = if from_middle < 0.0 { n - (-from_middle) as u64 } else { from_middle as u64 };
        Skewed { n, shift, hashed: true, kind: Kind::Normal { deviation: wanted.min(n / 2) } }
    }

    /// Each rank is its place: popular things are next to each other (fio's way to choose files).
    #[must_use]
    pub fn unhashed(mut self) -> Skewed {
        self.hashed = false;
        self
    }

    /// The next choice, below `n`.
    pub fn next(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self.kind {
            // Two ranks: the formula's constants are not finite.
            Kind::Zipf { zeta_n, two, .. } if self.n <= 2 => {
                let rank = u64::from(random::unit(rng) * zeta_n.max(two) > 1.0);
                self.spread(rank)
            }
            Kind::Zipf { alpha, eta, zeta_n, two } => {
                let u = random::unit(rng);
                let z = u * zeta_n;
                let rank = if z < 1.0 {
                    0
                } else if z < two {
                    1
                } else {
                    (self.n as f64 * libm::pow(eta * u - eta + 1.0, alpha)) as u64
                };
                self.spread(rank)
            }
            Kind::Pareto { power } => {
                self.spread(((self.n - 1) as f64 * libm::pow(random::unit(rng), power)) as u64)
            }
            Kind::Normal { deviation } => {
                let sum: u64 = (0..NORMAL_TERMS).map(|_| random::below(rng, self.n)).sum();
                let widened = sum / NORMAL_TERMS + random::below(rng, deviation.max(1));
                self.spread(widened.saturating_sub(deviation / 2).min(self.n - 1))
            }
        }
    }

    /// Scatters ranks: the place of a rank does not depend on its popularity.
    fn spread(&self, rank: u64) -> u64 {
        if !self.hashed {
            return (rank % self.n + self.shift) % self.n;
        }
        // Knuth's multiplicative hash with 2^64 divided by the golden ratio (TAOCP 6.4).
        (rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.n + self.shift) % self.n
    }
}

fn place(n: u64, center: Option<f64>, rng: &mut Xoshiro256PlusPlus) -> u64 {
    match center {
        Some(center) => ((n as f64 * center) as u64).min(n - 1),
        None => rng.next_u64() % n,
    }
}

/// The sum of `i^-theta` for `i` from 1 to `n`.
fn zeta(n: u64, theta: f64) -> f64 {
    let head: f64 = (1..=n.min(ZETA_TERMS)).map(|i| libm::pow(i as f64, -theta)).sum();
    if n <= ZETA_TERMS {
        return head;
    }
    let (a, b) = (ZETA_TERMS as f64, n as f64);
    let power = |x: f64, e: f64| libm::pow(x, e);
    let integral = (power(b, 1.0 - theta) - power(a, 1.0 - theta)) / (1.0 - theta);
    let ends = (power(b, -theta) - power(a, -theta)) / 2.0;
    let slopes = theta * (power(a, -theta - 1.0) - power(b, -theta - 1.0)) / 12.0;
    head + integral + ends + slopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_core::SeedableRng;

    fn counts(skewed: &Skewed, n: u64, draws: u64) -> Vec<u64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut counts = vec![0; n as usize];
        for _ in 0..draws {
            counts[skewed.next(&mut rng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn the_shortened_zipf_sum_is_the_full_one() {
        for theta in [0.3, 0.9, 1.1, 2.5] {
            let full: f64 = (1..=200_000_u64).map(|i| libm::pow(i as f64, -theta)).sum();
            let short = zeta(200_000, theta);
            assert!((short / full - 1.0).abs() < 1e-11, "theta {theta}: {short} and {full}");
        }
    }

    #[test]
    fn zipf_hits_ranks_in_proportion_to_their_power() {
        let (n, draws, theta) = (1 << 16, 1_000_000, 0.8);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let skewed = Skewed::zipf(n, theta, Some(0.0), &mut rng);
        let counts = counts(&skewed, n, draws);
        let sum = zeta(n, theta);
        for rank in [0_u64, 1] {
            let expected = draws as f64 * libm::pow(rank as f64 + 1.0, -theta) / sum;
            let found = counts[skewed.spread(rank) as usize] as f64;
            assert!((found / expected - 1.0).abs() < 0.05, "rank {rank}: {found}, expected {expected}");
        }
    }

    #[test]
    fn more_theta_means_more_skew() {
        let hottest = |theta| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
            let skewed = Skewed::zipf(10_000, theta, None, &mut rng);
            let mut counts = counts(&skewed, 10_000, 200_000);
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts[..1_000].iter().sum::<u64>()
        };
        let shares = [0.2, 0.5, 0.8, 1.2, 2.0].map(hottest);
        assert!(shares.windows(2).all(|pair| pair[0] < pair[1]), "{shares:?}");
    }

    #[test]
    fn pareto_of_a_fifth_gives_a_fifth_of_the_ranks_four_fifths_of_the_hits() {
        let (n, draws) = (100_000, 400_000);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let skewed = Skewed::pareto(n, 0.2, Some(0.0), &mut rng);
        let counts = counts(&skewed, n, draws);
        let hot: u64 = {
            let places: std::collections::BTreeSet<u64> = (0..n / 5).map(|r| skewed.spread(r)).collect();
            places.iter().map(|p| counts[*p as usize]).sum()
        };
        let share = hot as f64 / draws as f64;
        assert!((0.78..0.86).contains(&share), "{share}");
    }

    #[test]
    fn unhashed_normal_gathers_around_its_center() {
        for center in [0.3, 0.5, 0.7] {
            let n = 10_000;
            let counts = counts(&Skewed::normal(n, 5.0, center).unhashed(), n, 100_000);
            let middle = (n as f64 * center) as usize;
            let near: u64 = counts[middle - 1_500..middle + 1_500].iter().sum();
            assert!(near > 85_000, "center {center}: {near}");
        }
    }

    #[test]
    fn setting_up_for_a_huge_disk_takes_a_thousand_terms() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let started = std::time::Instant::now();
        let skewed = Skewed::zipf(1 << 40, 1.1, None, &mut rng);
        assert!(skewed.next(&mut rng) < 1 << 40);
        assert!(started.elapsed().as_millis() < 50);
    }

    proptest! {
        #[test]
        fn a_choice_is_always_within_range(
            n in 1_u64..1 << 50, theta in 0.01_f64..3.0, h in 0.01_f64..0.99, dev in 0_f64..99.9,
            center in prop::option::of(0_f64..=1.0), seed in any::<u64>(),
        ) {
            prop_assume!((theta - 1.0).abs() > 1e-3);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let all = [
                Skewed::zipf(n, theta, center, &mut rng),
                Skewed::pareto(n, h, center, &mut rng),
                Skewed::normal(n, dev, center.unwrap_or(0.5)),
            ];
            for skewed in all {
                for _ in 0..20 {
                    prop_assert!(skewed.next(&mut rng) < n);
                }
            }
        }
    }
}
