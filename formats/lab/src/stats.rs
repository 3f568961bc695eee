//! Statistics of repeated measurements.
//!
//! Confidence intervals of means use Student's *t*. Two sets of samples are compared with the
//! Mann–Whitney *U* test (Annals of Mathematical Statistics 18, 1947): exact for few samples
//! without ties, otherwise by the normal approximation with correction for ties.

use serde::Serialize;

/// Summary statistics of samples, with the 95 % confidence interval of the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Number of samples evaluated.
    #[serde(rename = "samples")]
    pub sample_count: usize,
    /// Arithmetic mean of the samples.
    pub mean: f64,
    /// Median; of an even number of samples the mean of the two middle ones.
    pub median: f64,
    /// Lowest value of the samples.
    #[serde(rename = "least")]
    pub min: f64,
    /// Highest value of the samples.
    #[serde(rename = "most")]
    pub max: f64,
    /// 95 % confidence interval of the mean (lower and upper bound); `None` for a single sample.
    #[serde(rename = "interval")]
    pub confidence_interval: Option<(f64, f64)>,
}

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Two-sided 95 % quantile of the standard normal distribution.
const Z_95: f64 = 1.959_964;

/// Returns the two-sided 95 % quantile of Student's t for `freedom` degrees of freedom, at least 1.
/// Above the table it is the Cornish–Fisher expansion (Abramowitz and Stegun, 26.7.5), which is
/// exact to three decimals there.
fn t_95(freedom: usize) -> f64 {
    if let Some(t) = freedom.checked_sub(1).and_then(|index| T_95.get(index)) {
        return *t;
    }
    let (z, n) = (Z_95, freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / n + second / (n * n)
}

impl Statistics {
    /// Computes the statistics of samples; `None` without samples.
    pub fn from_samples(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let upper = *sorted.get(count / 2)?;
        let median = match count % 2 {
            1 => upper,
            _ => (upper + *sorted.get(count / 2 - 1)?) / 2.0,
        };
        let interval = (count > 1).then(|| {
            let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
            let deviation = (squares / (count - 1) as f64).sqrt();
            let half_width = t_95(count - 1) * deviation / (count as f64).sqrt();
            (mean - half_width, mean + half_width)
        });
        Some(Self { sample_count: count, mean, median, min, max, confidence_interval: interval })
    }

    /// Returns half of the interval's width relative to the mean; `None` without an interval or if
    /// the mean is 0.
    pub fn relative_interval_half_width(&self) -> Option<f64> {
        let (low, high) = self.confidence_interval?;
        (self.mean != 0.0).then(|| (high - low) / 2.0 / self.mean.abs())
    }
}

/// Result of the Mann–Whitney test of two sets of samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MannWhitneyResult {
    /// Two-sided p-value: probability of such a difference or a larger one if both sets have the
    /// same distribution.
    pub p: f64,
    /// Probability that a sample of the second set exceeds one of the first, ties counted half: 0
    /// to 1.
    #[serde(rename = "above")]
    pub superiority: f64,
}

/// Maximum number of samples per set for the exact test, which enumerates all orders of the
/// samples.
const EXACT_SAMPLES_MAX: usize = 25;

/// Performs the Mann–Whitney test of two sets of samples; `None` if a set has no samples.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitneyResult> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let (m, n) = (first.len(), second.len());
    let pairs = (m * n) as f64;
    let mut u = 0.0_f64;
    let mut has_ties = false;
    for a in first {
        for b in second {
            if b > a {
                u += 1.0;
            } else if b == a {
                has_ties = true;
                u += 0.5;
            }
        }
    }
    let p = if !has_ties && m <= EXACT_SAMPLES_MAX && n <= EXACT_SAMPLES_MAX {
        exact(m, n, u.min(pairs - u))
    } else {
        approximate(first, second, u)
    };
    Some(MannWhitneyResult { p: p.min(1.0), superiority: u / pairs })
}

/// Returns the exact two-sided p-value of the statistic `u`: the share of the orders of `m` and `n`
/// samples with at most this U, doubled.
fn exact(m: usize, n: usize, u: f64) -> f64 {
    let u_max = m * n;
    let single =
        || std::iter::once(1.0).chain(std::iter::repeat_n(0.0, u_max)).collect::<Vec<f64>>();
    // For each j up to n: number of orders of i samples of the first set and j of the second, by
    // their U. Without samples of the first set there is one, with U = 0.
    let mut ways: Vec<Vec<f64>> = (0..=n).map(|_| single()).collect();
    for _ in 0..m {
        let mut next = vec![single()];
        for (j, with_fewer) in (1..).zip(ways.iter().skip(1)) {
            // The greatest sample belongs to the second set, or to the first and exceeds j of the
            // second.
            let shifted = std::iter::repeat_n(0.0, j).chain(with_fewer.iter().copied());
            let of_second = next.last().cloned().unwrap_or_default();
            next.push(of_second.iter().zip(shifted).map(|(a, b)| a + b).collect());
        }
        ways = next;
    }
    let counts = ways.last().cloned().unwrap_or_default();
    let total: f64 = counts.iter().sum();
    let below: f64 = counts.iter().take(u as usize + 1).sum();
    2.0 * below / total
}

fn approximate(first: &[f64], second: &[f64], u: f64) -> f64 {
    let (m, n) = (first.len() as f64, second.len() as f64);
    let mut values: Vec<f64> = first.iter().chain(second).copied().collect();
    values.sort_by(f64::total_cmp);
    let total = m + n;
    let mut ties = 0.0;
    let mut index = 0;
    while let Some(value) = values.get(index) {
        let untranslated = values.iter().skip(index).take_while(|other| *other == value).count();
        let t = untranslated as f64;
        ties += t.powi(3) - t;
        index += untranslated;
    }
    let variance = m * n / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)).max(1.0));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((u - m * n / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    2.0 * upper_tail(z)
}

/// Returns the probability that a standard normal variable exceeds `z` (Abramowitz and Stegun,
/// 26.2.17).
fn upper_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let polynomial = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-3, "{a} beside {b}");
    }

    #[test]
    fn quantiles_continue_behind_the_table() {
        for (freedom, t) in [(30, 2.042), (31, 2.0395), (60, 2.0003), (120, 1.9799)] {
            assert_near(t_95(freedom), t);
        }
    }

    #[test]
    fn interval_uses_students_t() {
        let statistics = Statistics::from_samples(&[10.0, 12.0, 14.0]).unwrap();
        assert_near(statistics.mean, 12.0);
        assert_near(statistics.median, 12.0);
        // t(2) = 4.303, deviation 2, √3.
        let (low, high) = statistics.confidence_interval.unwrap();
        assert_near(low, 12.0 - 4.303 * 2.0 / 3.0_f64.sqrt());
        assert_near(high, 12.0 + 4.303 * 2.0 / 3.0_f64.sqrt());
        assert_eq!(Statistics::from_samples(&[3.0]).unwrap().confidence_interval, None);
        assert_eq!(Statistics::from_samples(&[]), None);
        assert_near(Statistics::from_samples(&[4.0, 1.0, 3.0, 2.0]).unwrap().median, 2.5);
    }

    /// Values from tables of the exact distribution: 5 against 5 samples, U = 2: p = 0.032, U = 0:
    /// p = 0.008.
    #[test]
    fn the_test_is_exact_for_few_samples() {
        let low = [1.0, 2.0, 3.0, 4.0, 5.0];
        let test = mann_whitney(&low, &[6.0, 7.0, 8.0, 9.0, 10.0]).unwrap();
        assert_near(test.p, 2.0 / 252.0);
        assert_near(test.superiority, 1.0);
        // 3.5 is below two samples of the first set.
        let test = mann_whitney(&low, &[3.5, 7.0, 8.0, 9.0, 10.0]).unwrap();
        assert_near(test.p, 8.0 / 252.0);
        let test = mann_whitney(&[1.0, 4.0], &[2.0, 3.0]).unwrap();
        assert_near(test.p, 1.0);
        // Three against three samples cannot have a p-value below 0.1.
        assert_near(mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap().p, 0.1);
    }

    #[test]
    fn mann_whitney_handles_ties_and_many_samples() {
        let untranslated = vec![1.0; 40];
        assert_near(mann_whitney(&untranslated, &untranslated).unwrap().p, 1.0);
        let low: Vec<f64> = (0..40).map(f64::from).collect();
        let high: Vec<f64> = (0..40).map(|value| f64::from(value) + 0.5).collect();
        let p = mann_whitney(&low, &high).unwrap().p;
        assert!(p > 0.85, "{p}");
        let high: Vec<f64> = (0..40).map(|value| f64::from(value) + 30.0).collect();
        assert!(mann_whitney(&low, &high).unwrap().p < 1e-6);
        assert_eq!(mann_whitney(&[], &low), None);
    }
}
