//! Evaluation of samples, and the report page.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::cpu_distance::{Distance, handover_ns};

/// Value of one measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    /// Measured value in the unit of its comparison.
    pub(crate) rate: f64,
    /// Transfer time of a cache line between the CPUs before and after the measurement, in
    /// nanoseconds; `None` where it does not affect the result.
    pub(crate) handover_ns: Option<[f64; 2]>,
}

impl Sample {
    /// Measures, and measures the distance of the CPUs before and after.
    pub(crate) fn take(cpus: [u16; 2], measure: impl FnOnce() -> Result<f64>) -> Result<Self> {
        let before = handover_ns(cpus)?;
        let rate = measure()?;
        Ok(Self { rate, handover_ns: Some([before, handover_ns(cpus)?]) })
    }

    /// Creates a sample that does not depend on the CPUs' distance.
    pub(crate) fn without_distance(rate: f64) -> Self {
        Self { rate, handover_ns: None }
    }

    /// Returns the distance; `None` if it changed meanwhile, or is irrelevant.
    fn distance(&self) -> Option<Distance> {
        let [before, after] = self.handover_ns?.map(Distance::classify);
        (before == after).then_some(before)
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.rate)?;
        match self.handover_ns {
            Some([before, after]) => write!(f, " (hand-over {before:.0}, {after:.0} ns)"),
            None => Ok(()),
        }
    }
}

/// Pair of measurements.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Pair {
    pub(crate) peer: Sample,
    pub(crate) suimon: Sample,
}

impl Pair {
    /// Returns the ratio of the pair; above 1 if Suimon is better.
    fn ratio(&self, better: Better) -> f64 {
        match better {
            Better::More => self.suimon.rate / self.peer.rate,
            Better::Less => self.peer.rate / self.suimon.rate,
        }
    }

    /// Returns the distance of the CPUs if it was the same in both measurements.
    fn distance(&self) -> Option<Distance> {
        self.peer.distance().filter(|distance| Some(*distance) == self.suimon.distance())
    }
}

/// Whether larger or smaller values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    /// Larger is better, for a rate.
    More,
    /// Smaller is better, for a time or a consumption.
    Less,
}

/// Required result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bar {
    /// Ratio of at least this value.
    Ratio(f64),
    /// Maximum increase over the peer's value, in the comparison's unit.
    AddedMax(f64),
}

/// Comparison of one kind of work.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Work {
    /// File name of its samples.
    pub(crate) name: String,
    /// Title on the results page.
    pub(crate) title: String,
    /// Name of the program compared with.
    pub(crate) peer: String,
    /// `Mpps`, `Gbit/s`, `µs`, …
    pub(crate) unit: &'static str,
    /// Whether larger or smaller values are better.
    pub(crate) better: Better,
    /// Required result, if there is one.
    pub(crate) bar: Option<Bar>,
    /// Pairs in the order of measurement; empty if not measured.
    pub(crate) pairs: Vec<Pair>,
    /// Reason why the comparison was not measured; `None` if it was.
    pub(crate) missing: Option<String>,
}

/// Medians and the spread of the ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) pairs: usize,
    pub(crate) peer: f64,
    pub(crate) suimon: f64,
    pub(crate) ratio: f64,
    pub(crate) ratio_min: f64,
    pub(crate) ratio_max: f64,
    /// Increase of Suimon's value over the peer's.
    pub(crate) added: f64,
}

impl Summary {
    /// Summarises pairs; `None` if there are none.
    fn from_pairs(pairs: &[Pair], better: Better) -> Option<Self> {
        let ratios: Vec<f64> = pairs.iter().map(|pair| pair.ratio(better)).collect();
        Some(Self {
            pairs: pairs.len(),
            peer: median(pairs.iter().map(|pair| pair.peer.rate))?,
            suimon: median(pairs.iter().map(|pair| pair.suimon.rate))?,
            ratio: median(ratios.iter().copied())?,
            ratio_min: ratios.iter().copied().reduce(f64::min)?,
            ratio_max: ratios.iter().copied().reduce(f64::max)?,
            added: median(pairs.iter().map(|pair| pair.suimon.rate - pair.peer.rate))?,
        })
    }
}

impl Work {
    /// Creates a comparison without measurements.
    pub(crate) fn new(name: &str, title: &str, peer: &str, unit: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            peer: peer.to_owned(),
            unit,
            better: Better::More,
            bar: None,
            pairs: Vec::new(),
            missing: None,
        }
    }

    /// Returns the comparison with a required result.
    pub(crate) fn with_bar(self, bar: Bar) -> Self {
        Self { bar: Some(bar), ..self }
    }

    /// Declares that smaller values are better.
    pub(crate) fn less_is_better(self) -> Self {
        Self { better: Better::Less, ..self }
    }

    /// Adds a pair, and prints it as progress.
    pub(crate) fn push(&mut self, pair: Pair) {
        self.pairs.push(pair);
        let Self { name, peer, unit, .. } = self;
        let Pair { peer: peer_sample, suimon } = pair;
        eprintln!(
            "{name}, pair {}: {peer} {peer_sample}, Suimon {suimon} {unit}",
            self.pairs.len()
        );
    }

    /// Returns the pairs measured with the CPUs at this distance.
    fn pairs_at(&self, distance: Distance) -> Vec<Pair> {
        self.pairs.iter().filter(|pair| pair.distance() == Some(distance)).copied().collect()
    }

    /// Returns the number of pairs whose two measurements had the same distance of CPUs.
    pub(crate) fn like_pairs(&self) -> usize {
        self.pairs_at(Distance::Near).len() + self.pairs_at(Distance::Far).len()
    }
}

/// Returns true if one more pair is needed: until `pairs` of them have equal distances, but at most
/// three times as many in total, because the placement of CPUs may change continuously.
pub(crate) fn needs_measurement(work: &Work, pairs: usize) -> bool {
    work.missing.is_none() && work.like_pairs() < pairs && work.pairs.len() < 3 * pairs
}

/// Returns the median; the mean of the two middle values for an even number.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Writes the samples of each comparison as JSON.
pub(crate) fn write_samples(folder: &Path, benchmarks: &[Work]) -> Result<()> {
    fs::create_dir_all(folder)?;
    for work in benchmarks {
        let text = serde_json::to_string_pretty(work)? + "\n";
        fs::write(folder.join(format!("{}.json", work.name)), text)?;
    }
    Ok(())
}

/// Returns the table of comparisons, and the description of the machine.
pub(crate) fn render(benchmarks: &[Work], machine: &[String]) -> String {
    let mut page = String::new();
    page.push_str(
        "| work | peer | CPUs | peer's median | Suimon's median | ratio | lowest – highest | bar | \
         pairs |\n",
    );
    page.push_str("|---|---|---|---:|---:|---:|---:|---:|---:|\n");
    for work in benchmarks {
        render_work(&mut page, work);
    }
    page.push_str("\nMachine and versions\n\n");
    for detail in machine {
        let _ = writeln!(page, "- {detail}");
    }
    page
}

fn render_work(page: &mut String, work: &Work) {
    let Work { title, peer, unit, .. } = work;
    let lines = [
        ("all", work.pairs.clone()),
        ("near", work.pairs_at(Distance::Near)),
        ("far", work.pairs_at(Distance::Far)),
    ];
    let mut names = (title.as_str(), peer.as_str());
    for (cpus, pairs) in lines {
        let Some(summary) = Summary::from_pairs(&pairs, work.better) else { continue };
        let Summary { peer: peer_sample, suimon, ratio, ratio_min, ratio_max, pairs, added } =
            summary;
        let bar = match work.bar {
            Some(Bar::Ratio(min_ratio)) => format!("{min_ratio}"),
            Some(Bar::AddedMax(max_added)) => format!("{max_added} {unit} more; {added:.2}"),
            None => String::new(),
        };
        let (title, peer) = std::mem::take(&mut names);
        let _ = writeln!(
            page,
            "| {title} | {peer} | {cpus} | {peer_sample:.2} {unit} | {suimon:.2} {unit} | \
             **{ratio:.2}** | {ratio_min:.2} – {ratio_max:.2} | {bar} | {pairs} |",
        );
    }
    if work.pairs.is_empty() {
        let reason = work.missing.as_deref().unwrap_or("no pair");
        let _ = writeln!(page, "| {title} | {peer} | | not measured: {reason} | | | | | 0 |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a comparison from tuples of the peer's value and transfer time, then Suimon's.
    fn new_work(pairs: &[[f64; 4]]) -> Work {
        let sample = |rate, ns| Sample { rate, handover_ns: Some([ns, ns]) };
        Work {
            name: "w".to_owned(),
            title: "work".to_owned(),
            peer: "peer".to_owned(),
            unit: "Mpps",
            better: Better::More,
            bar: None,
            pairs: pairs
                .iter()
                .map(|&[a, a_ns, b, b_ns]| Pair { peer: sample(a, a_ns), suimon: sample(b, b_ns) })
                .collect(),
            missing: Some("not installed".to_owned()),
        }
    }

    #[test]
    fn the_ratio_is_the_median_of_the_pairs_ratios() {
        // The ratio of the medians would be 3 / 2.
        let work =
            new_work(&[[1.0, 30.0, 3.0, 30.0], [2.0, 30.0, 2.0, 30.0], [4.0, 30.0, 4.0, 30.0]]);
        let summary = Summary::from_pairs(&work.pairs, Better::More).unwrap();
        assert_eq!((summary.ratio, summary.ratio_min, summary.ratio_max), (1.0, 1.0, 3.0));
        assert_eq!((summary.peer, summary.suimon), (2.0, 3.0));
    }

    #[test]
    fn the_ratio_is_inverted_where_less_is_better() {
        let work = new_work(&[[4.0, 30.0, 2.0, 30.0]]).less_is_better();
        assert_eq!(Summary::from_pairs(&work.pairs, work.better).unwrap().ratio, 2.0);
    }

    #[test]
    fn pairs_of_unlike_halves_are_only_in_the_first_line() {
        let work =
            new_work(&[[1.0, 30.0, 3.0, 170.0], [2.0, 30.0, 2.0, 30.0], [4.0, 170.0, 8.0, 170.0]]);
        assert_eq!(work.like_pairs(), 2);
        let page = render(&[work], &[]);
        assert!(
            page.contains("| work | peer | all | 2.00 Mpps | 3.00 Mpps | **2.00** |"),
            "{page}"
        );
        assert!(page.contains("|  |  | near | 2.00 Mpps | 2.00 Mpps | **1.00** |"), "{page}");
        assert!(page.contains("|  |  | far | 4.00 Mpps | 8.00 Mpps | **2.00** |"), "{page}");
    }

    #[test]
    fn a_sample_during_which_the_cpus_moved_is_unlike_any_other() {
        let mut work = new_work(&[[1.0, 30.0, 1.0, 30.0]]);
        work.pairs[0].peer.handover_ns = Some([30.0, 170.0]);
        assert_eq!(work.like_pairs(), 0);
    }

    #[test]
    fn the_limit_is_printed_beside_the_measured_ratio() {
        let pairs = [[100.0, 30.0, 140.0, 30.0]];
        let page = render(&[new_work(&pairs).with_bar(Bar::Ratio(1.5))], &[]);
        assert!(page.contains("| **1.40** | 1.40 – 1.40 | 1.5 | 1 |"), "{page}");
        let page = render(&[new_work(&pairs).with_bar(Bar::AddedMax(50.0))], &[]);
        assert!(page.contains("| 1.40 – 1.40 | 50 Mpps more; 40.00 | 1 |"), "{page}");
    }

    #[test]
    fn a_comparison_that_was_not_measured_is_listed_as_such() {
        let page = render(&[new_work(&[])], &[]);
        assert!(page.contains("not measured: not installed"), "{page}");
    }
}
