//! From samples to ratios, and to a page.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use suimon_rig::{Distance, handover_ns};

/// One measurement.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sample {
    /// In the unit of its work.
    pub(crate) rate: f64,
    /// What a cache line took from CPU to CPU before and after, in nanoseconds; `None`
    /// where that has no part in the figure.
    pub(crate) handover_ns: Option<[f64; 2]>,
}

impl Sample {
    /// Measures, with the CPUs' distance before and after.
    pub(crate) fn take(cpus: [u16; 2], measure: impl FnOnce() -> Result<f64>) -> Result<Self> {
        let before = handover_ns(cpus)?;
        let rate = measure()?;
        Ok(Self { rate, handover_ns: Some([before, handover_ns(cpus)?]) })
    }

    /// A figure that the CPUs' distance has no part in.
    pub(crate) fn alone(rate: f64) -> Self {
        Self { rate, handover_ns: None }
    }

    /// `None` if the CPUs moved meanwhile, or it does not matter.
    fn distance(&self) -> Option<Distance> {
        let [before, after] = self.handover_ns?.map(Distance::of);
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

/// One pair of measurements.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Pair {
    pub(crate) peer: Sample,
    pub(crate) suimon: Sample,
}

impl Pair {
    /// Above 1 where Suimon is the better one.
    fn ratio(&self, better: Better) -> f64 {
        match better {
            Better::More => self.suimon.rate / self.peer.rate,
            Better::Less => self.peer.rate / self.suimon.rate,
        }
    }

    /// Where the CPUs were, if they stayed there for both measurements.
    fn distance(&self) -> Option<Distance> {
        self.peer.distance().filter(|distance| Some(*distance) == self.suimon.distance())
    }
}

/// Which of two figures is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    /// A rate.
    More,
    /// A time, or what is used up.
    Less,
}

/// What a work is to reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bar {
    /// A ratio of at least this.
    Ratio(f64),
    /// At most so much more than the peer's figure, in the work's unit.
    AddedMax(f64),
}

/// One kind of work that both did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Work {
    /// File name of its samples.
    pub(crate) name: String,
    /// For people.
    pub(crate) title: String,
    /// Who the peer is.
    pub(crate) peer: String,
    /// `Mpps`, `Gbit/s`, `µs`, …
    pub(crate) unit: &'static str,
    /// What makes the better of two.
    pub(crate) better: Better,
    /// What is asked for, if something is.
    pub(crate) bar: Option<Bar>,
    /// In order; empty if not measured.
    pub(crate) pairs: Vec<Pair>,
    /// Why it was not measured.
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
    /// How much more Suimon's figure is than the peer's.
    pub(crate) added: f64,
}

impl Summary {
    /// `None` if there is no pair.
    fn of(pairs: &[Pair], better: Better) -> Option<Self> {
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
    /// A work of which nothing was measured yet.
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

    /// The same, which is to reach this.
    pub(crate) fn with_bar(self, bar: Bar) -> Self {
        Self { bar: Some(bar), ..self }
    }

    /// The same, where less is better.
    pub(crate) fn less_is_better(self) -> Self {
        Self { better: Better::Less, ..self }
    }

    /// Takes a pair down, and tells whoever waits.
    pub(crate) fn push(&mut self, pair: Pair) {
        self.pairs.push(pair);
        let Self { name, peer, unit, .. } = self;
        let Pair { peer: theirs, suimon } = pair;
        eprintln!("{name}, pair {}: {peer} {theirs}, Suimon {suimon} {unit}", self.pairs.len());
    }

    /// The pairs whose measurements found the CPUs at this distance.
    fn at(&self, distance: Distance) -> Vec<Pair> {
        self.pairs.iter().filter(|pair| pair.distance() == Some(distance)).copied().collect()
    }

    /// Pairs that compare like with like.
    pub(crate) fn like_pairs(&self) -> usize {
        self.at(Distance::Near).len() + self.at(Distance::Far).len()
    }
}

/// Whether one more pair is wanted: there are to be `pairs` that compare like with
/// like, but the CPUs may move all the time, so three times as many are enough.
pub(crate) fn is_wanted(work: &Work, pairs: usize) -> bool {
    work.missing.is_none() && work.like_pairs() < pairs && work.pairs.len() < 3 * pairs
}

/// The middle value, or the mean of the two.
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

/// Writes each work's samples as JSON.
pub(crate) fn write_samples(folder: &Path, works: &[Work]) -> Result<()> {
    fs::create_dir_all(folder)?;
    for work in works {
        let text = serde_json::to_string_pretty(work)? + "\n";
        fs::write(folder.join(format!("{}.json", work.name)), text)?;
    }
    Ok(())
}

/// The works' table, and what they were measured on.
pub(crate) fn render(works: &[Work], machine: &[String]) -> String {
    let mut page = String::new();
    page.push_str(
        "| work | peer | CPUs | peer's median | Suimon's median | ratio | lowest – highest | bar | \
         pairs |\n",
    );
    page.push_str("|---|---|---|---:|---:|---:|---:|---:|---:|\n");
    for work in works {
        render_work(&mut page, work);
    }
    page.push_str("\nMachine and versions\n\n");
    for fact in machine {
        let _ = writeln!(page, "- {fact}");
    }
    page
}

fn render_work(page: &mut String, work: &Work) {
    let Work { title, peer, unit, .. } = work;
    let lines = [
        ("all", work.pairs.clone()),
        ("near", work.at(Distance::Near)),
        ("far", work.at(Distance::Far)),
    ];
    let mut names = (title.as_str(), peer.as_str());
    for (cpus, pairs) in lines {
        let Some(summary) = Summary::of(&pairs, work.better) else { continue };
        let Summary { peer: theirs, suimon, ratio, ratio_min, ratio_max, pairs, added } = summary;
        let bar = match work.bar {
            Some(Bar::Ratio(least)) => format!("{least}"),
            Some(Bar::AddedMax(most)) => format!("{most} {unit} more; {added:.2}"),
            None => String::new(),
        };
        let (title, peer) = std::mem::take(&mut names);
        let _ = writeln!(
            page,
            "| {title} | {peer} | {cpus} | {theirs:.2} {unit} | {suimon:.2} {unit} | \
             **{ratio:.2}** | {ratio_min:.2} – {ratio_max:.2} | {bar} | {pairs} |",
        );
    }
    if work.pairs.is_empty() {
        let why = work.missing.as_deref().unwrap_or("no pair");
        let _ = writeln!(page, "| {title} | {peer} | | not measured: {why} | | | | | 0 |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peer's rate and hand-over time, then Suimon's.
    fn work(pairs: &[[f64; 4]]) -> Work {
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
        let work = work(&[[1.0, 30.0, 3.0, 30.0], [2.0, 30.0, 2.0, 30.0], [4.0, 30.0, 4.0, 30.0]]);
        let summary = Summary::of(&work.pairs, Better::More).unwrap();
        assert_eq!((summary.ratio, summary.ratio_min, summary.ratio_max), (1.0, 1.0, 3.0));
        assert_eq!((summary.peer, summary.suimon), (2.0, 3.0));
    }

    #[test]
    fn where_less_is_better_the_ratio_is_turned_over() {
        let work = work(&[[4.0, 30.0, 2.0, 30.0]]).less_is_better();
        assert_eq!(Summary::of(&work.pairs, work.better).unwrap().ratio, 2.0);
    }

    #[test]
    fn pairs_of_unlike_halves_are_only_in_the_first_line() {
        let work =
            work(&[[1.0, 30.0, 3.0, 170.0], [2.0, 30.0, 2.0, 30.0], [4.0, 170.0, 8.0, 170.0]]);
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
        let mut work = work(&[[1.0, 30.0, 1.0, 30.0]]);
        work.pairs[0].peer.handover_ns = Some([30.0, 170.0]);
        assert_eq!(work.like_pairs(), 0);
    }

    #[test]
    fn the_bar_stands_beside_what_was_measured() {
        let pairs = [[100.0, 30.0, 140.0, 30.0]];
        let page = render(&[work(&pairs).with_bar(Bar::Ratio(1.5))], &[]);
        assert!(page.contains("| **1.40** | 1.40 – 1.40 | 1.5 | 1 |"), "{page}");
        let page = render(&[work(&pairs).with_bar(Bar::AddedMax(50.0))], &[]);
        assert!(page.contains("| 1.40 – 1.40 | 50 Mpps more; 40.00 | 1 |"), "{page}");
    }

    #[test]
    fn what_was_not_measured_says_so() {
        let page = render(&[work(&[])], &[]);
        assert!(page.contains("not measured: not installed"), "{page}");
    }
}
