//! From samples to ratios, and to a page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

/// One pair of measurements, in the unit of its work.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Pair {
    pub(crate) peer: f64,
    pub(crate) suimon: f64,
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
    /// `Mpps`, `Gbit/s`; more is better.
    pub(crate) unit: &'static str,
    /// In order; empty if not measured.
    pub(crate) pairs: Vec<Pair>,
    /// Why it was not measured.
    pub(crate) missing: Option<String>,
}

/// Medians and the spread of the ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) peer: f64,
    pub(crate) suimon: f64,
    pub(crate) ratio: f64,
    pub(crate) ratio_min: f64,
    pub(crate) ratio_max: f64,
}

impl Work {
    /// `None` if it was not measured.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let ratios: Vec<f64> = self.pairs.iter().map(|pair| pair.suimon / pair.peer).collect();
        Some(Summary {
            peer: median(self.pairs.iter().map(|pair| pair.peer))?,
            suimon: median(self.pairs.iter().map(|pair| pair.suimon))?,
            ratio: median(ratios.iter().copied())?,
            ratio_min: ratios.iter().copied().reduce(f64::min)?,
            ratio_max: ratios.iter().copied().reduce(f64::max)?,
        })
    }
}

/// The middle value, or the mean of the two.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
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

/// The page.
pub(crate) fn render(works: &[Work], machine: &[String]) -> String {
    let mut page = String::from(
        "# Benchmarks\n\nWritten by `make bench`. Peer and Suimon do the same work on the same \
         machine, alternately, in pairs.\nThe ratio is the median of the pairs' ratios (more is \
         better for Suimon), with the lowest and the highest pair beside it.\nThe samples are in \
         `target/bench/` after a run.\n\n",
    );
    page.push_str(
        "| work | peer | peer's median | Suimon's median | ratio | lowest – highest | pairs |\n",
    );
    page.push_str("|---|---|---:|---:|---:|---:|---:|\n");
    for work in works {
        let Work { title, peer, unit, .. } = work;
        let _ = match work.summary() {
            Some(Summary { peer: theirs, suimon, ratio, ratio_min, ratio_max }) => writeln!(
                page,
                "| {title} | {peer} | {theirs:.2} {unit} | {suimon:.2} {unit} | **{ratio:.2}** | \
                 {ratio_min:.2} – {ratio_max:.2} | {} |",
                work.pairs.len()
            ),
            None => writeln!(
                page,
                "| {title} | {peer} | not measured: {} | | | | 0 |",
                work.missing.as_deref().unwrap_or("no pair")
            ),
        };
    }
    page.push_str("\nMachine and versions\n\n");
    for fact in machine {
        let _ = writeln!(page, "- {fact}");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(pairs: &[(f64, f64)]) -> Work {
        Work {
            name: "w".to_owned(),
            title: "work".to_owned(),
            peer: "peer".to_owned(),
            unit: "Mpps",
            pairs: pairs.iter().map(|&(peer, suimon)| Pair { peer, suimon }).collect(),
            missing: Some("not installed".to_owned()),
        }
    }

    #[test]
    fn the_ratio_is_the_median_of_the_pairs_ratios() {
        // The ratio of the medians would be 3 / 2.
        let summary = work(&[(1.0, 3.0), (2.0, 2.0), (4.0, 4.0)]).summary().unwrap();
        assert_eq!((summary.ratio, summary.ratio_min, summary.ratio_max), (1.0, 1.0, 3.0));
        assert_eq!((summary.peer, summary.suimon), (2.0, 3.0));
    }

    #[test]
    fn what_was_not_measured_says_so() {
        let page = render(&[work(&[])], &[]);
        assert!(page.contains("not measured: not installed"), "{page}");
    }
}
