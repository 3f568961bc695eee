//! Comparison of two runs of the lab, measure by measure.
//!
//! Mann–Whitney test for each measure of each case present in both runs, with Holm's correction for
//! multiple tests (Scandinavian Journal of Statistics 6, 1979).

use serde::Serialize;

use crate::run::{Case, Measure, MeasureDirection, Run};
use crate::stats::{Statistics, mann_whitney};

/// Significance level over all comparisons (family-wise error rate).
const SIGNIFICANCE_LEVEL: f64 = 0.05;

/// Comparison of one measure of one case in two runs.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Case, as described in the first run.
    pub case: Case,
    /// Measure, as described in the first run.
    pub measure: Measure,
    /// Statistics of the measure's values in the first run (a).
    #[serde(rename = "a")]
    pub first_run: Statistics,
    /// Statistics of the measure's values in the second run (b).
    #[serde(rename = "b")]
    pub second_run: Statistics,
    /// Difference of the means in percent of the first, (b - a) / a; `None` if the mean of a is 0.
    pub difference_percent: Option<f64>,
    /// Two-sided p-value of the Mann–Whitney test.
    pub p: f64,
    /// p-value after Holm's correction over all tests.
    pub p_corrected: f64,
    /// Conclusion from the corrected p-value.
    pub finding: ComparisonResult,
}

/// Conclusion from the comparison of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonResult {
    /// The second run is better.
    Better,
    /// The second run is worse.
    Worse,
    /// The runs differ significantly in a measure for which neither direction is better.
    Different,
    /// No statistically significant difference was found.
    #[serde(rename = "not-shown")]
    NotSignificant,
    /// There are too few repetitions for any difference, however large, to be significant.
    #[serde(rename = "too-few")]
    TooFewSamples,
}

/// Compares every measure of every case present in both runs.
pub fn compare(a: &Run, b: &Run) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for case in a.cases.iter().filter(|case| b.case(&case.id).is_some()) {
        for measure in a.measures.iter().filter(|measure| b.measure(&measure.id).is_some()) {
            let (first, second) =
                (a.values(&case.id, &measure.id), b.values(&case.id, &measure.id));
            let estimates = Statistics::from_samples(&first).zip(Statistics::from_samples(&second));
            let (Some((of_a, of_b)), Some(test)) = (estimates, mann_whitney(&first, &second))
            else {
                continue;
            };
            comparisons.push(Comparison {
                case: case.clone(),
                measure: measure.clone(),
                first_run: of_a,
                second_run: of_b,
                difference_percent: (of_a.mean != 0.0)
                    .then(|| (of_b.mean / of_a.mean - 1.0) * 100.0),
                p: test.p,
                p_corrected: 1.0,
                finding: ComparisonResult::NotSignificant,
            });
        }
    }
    correct(&mut comparisons);
    comparisons
}

/// Applies Holm's correction to the p-values and derives the findings: the smallest p-value is
/// multiplied by the number of tests, the next by one less, and so on; corrected values are made
/// monotonic.
fn correct(comparisons: &mut [Comparison]) {
    let count = comparisons.len();
    let mut order: Vec<usize> = (0..count).collect();
    let p = |index: usize, comparisons: &[Comparison]| {
        comparisons.get(index).map_or(1.0, |comparison| comparison.p)
    };
    order.sort_by(|a, b| p(*a, comparisons).total_cmp(&p(*b, comparisons)));
    let mut corrected = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        let Some(comparison) = comparisons.get_mut(index) else { continue };
        corrected = corrected.max((comparison.p * (count - rank) as f64).min(1.0));
        comparison.p_corrected = corrected;
        comparison.finding = finding(comparison, count);
    }
}

fn finding(comparison: &Comparison, tests: usize) -> ComparisonResult {
    if comparison.p_corrected > SIGNIFICANCE_LEVEL {
        // The smallest p-value possible with these sample counts.
        let smallest = 2.0
            / combinations(comparison.first_run.sample_count, comparison.second_run.sample_count);
        return if smallest * tests as f64 > SIGNIFICANCE_LEVEL {
            ComparisonResult::TooFewSamples
        } else {
            ComparisonResult::NotSignificant
        };
    }
    match (comparison.measure.better, comparison.second_run.median > comparison.first_run.median) {
        (MeasureDirection::None, _) => ComparisonResult::Different,
        (MeasureDirection::Higher, true) | (MeasureDirection::Lower, false) => {
            ComparisonResult::Better
        }
        (MeasureDirection::Higher, false) | (MeasureDirection::Lower, true) => {
            ComparisonResult::Worse
        }
    }
}

/// Returns the number of ways in which `m` and `n` samples can be interleaved by size: the binomial
/// coefficient of m + n over m.
fn combinations(m: usize, n: usize) -> f64 {
    (1..=m).map(|k| (n + k) as f64 / k as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::localized_text::LocalizedText;
    use crate::run::Repetition;

    fn run(id: &str, values: &[(&str, &[f64])]) -> Run {
        let mut run = crate::run::tests::run(id);
        run.cases.push(Case::new("a", LocalizedText::untranslated("a"), 1.0));
        for (measure, values) in values {
            run.measures.push(Measure::new(
                measure,
                LocalizedText::untranslated(*measure),
                "",
                MeasureDirection::Higher,
            ));
            for (repetition, value) in (0..).zip(*values) {
                let mut part =
                    Repetition { case_id: "a".to_owned(), repetition, ..Repetition::default() };
                part.set_value(measure, *value);
                run.repetitions.push(part);
            }
        }
        run
    }

    const LOW: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const HIGH: [f64; 6] = [11.0, 12.0, 13.0, 14.0, 15.0, 16.0];
    const MIXED: [f64; 6] = [1.5, 2.5, 3.5, 4.5, 5.5, 0.5];

    #[test]
    fn significant_differences_are_reported() {
        let a = run("x", &[("up", &LOW), ("down", &HIGH), ("same", &LOW), ("few", &LOW[..3])]);
        let b = run("y", &[("up", &HIGH), ("down", &LOW), ("same", &MIXED), ("few", &HIGH[..3])]);
        let findings: Vec<ComparisonResult> =
            compare(&a, &b).iter().map(|comparison| comparison.finding).collect();
        assert_eq!(
            findings,
            [
                ComparisonResult::Better,
                ComparisonResult::Worse,
                ComparisonResult::NotSignificant,
                ComparisonResult::TooFewSamples
            ]
        );
    }

    /// 4 against 4 samples: p = 0.029 is significant alone, but not among three comparisons.
    #[test]
    fn holm_correction_requires_smaller_p_values() {
        let (a, b) = (run("x", &[("up", &LOW[..4])]), run("y", &[("up", &HIGH[..4])]));
        assert_eq!(compare(&a, &b)[0].finding, ComparisonResult::Better);
        let first: [(&str, &[f64]); 3] = [("up", &LOW[..4]), ("m", &LOW), ("n", &LOW)];
        let second: [(&str, &[f64]); 3] = [("up", &HIGH[..4]), ("m", &MIXED), ("n", &MIXED)];
        let compared = compare(&run("x", &first), &run("y", &second));
        assert!((compared[0].p_corrected - 3.0 * 2.0 / 70.0).abs() < 1e-9);
        assert_eq!(compared[0].finding, ComparisonResult::TooFewSamples);
    }
}
