//! What was measured, and how plans compare.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::plan::{Plan, REFERENCE};
use crate::circumstances::Circumstances;
use crate::spread::Spread;

/// A plan's run.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    plan: Plan,
    pub(crate) circumstances: Circumstances,
    /// What of each plan of `suimon power` this machine does not have, and why.
    pub(crate) missing: BTreeMap<String, Vec<String>>,
    pub(crate) samples: Vec<Sample>,
    comparisons: Vec<Comparison>,
    /// Why it ended before its last round did.
    pub(crate) failure: Option<String>,
}

/// What keeps the daemon busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Load {
    Nothing,
    /// Requests over TCP between light guests and the outside.
    Sessions,
    /// Random reads of 4 KiB, one at a time, by a client that sleeps meanwhile.
    VhostUser,
    /// The same over NBD.
    Nbd,
}

impl Load {
    pub(crate) const ALL: [Self; 4] = [Self::Nothing, Self::Sessions, Self::VhostUser, Self::Nbd];

    fn text(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Sessions => "TCP requests",
            Self::VhostUser => "reads over vhost-user",
            Self::Nbd => "reads over NBD",
        }
    }
}

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    /// When it began, in seconds after the first one did.
    pub(crate) at_s: f64,
    pub(crate) round: usize,
    /// The plan of `suimon power`.
    pub(crate) plan: String,
    pub(crate) load: Load,
    #[serde(flatten)]
    pub(crate) seen: Seen,
}

/// What a measurement came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Seen {
    /// Transactions per second; none of nothing.
    pub(crate) per_second: Option<f64>,
    /// CPU time of the daemon for each, in µs.
    pub(crate) cpu_us_each: Option<f64>,
    /// CPU time of the daemon, in percent of one CPU.
    pub(crate) cpu_percent: f64,
    /// Of packages and memory; none where the machine does not tell.
    pub(crate) watts: Option<f64>,
}

/// A plan of `suimon power` under a load, over all rounds.
#[derive(Debug, Serialize)]
struct Comparison {
    load: Load,
    plan: String,
    per_second: Option<Spread>,
    /// Of rounds: transactions for each that the reference had in the same round.
    ratio: Option<Spread>,
    cpu_us_each: Option<Spread>,
    cpu_percent: Option<Spread>,
    watts: Option<Spread>,
}

impl Record {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            circumstances: Circumstances::now(),
            missing: BTreeMap::new(),
            samples: Vec::new(),
            comparisons: Vec::new(),
            failure: None,
        }
    }

    /// Compares what was measured so far.
    pub(crate) fn compare(&mut self) {
        let mut comparisons = Vec::new();
        for load in Load::ALL {
            comparisons.extend(self.plan.plans.iter().map(|plan| self.comparison(load, plan)));
        }
        self.comparisons = comparisons;
    }

    fn comparison(&self, load: Load, plan: &str) -> Comparison {
        let of = |plan: &str| -> Vec<&Sample> {
            let is_meant = |sample: &&Sample| sample.load == load && sample.plan == plan;
            self.samples.iter().filter(is_meant).collect()
        };
        let (own, reference) = (of(plan), of(REFERENCE));
        let spread = |value: fn(&Seen) -> Option<f64>| {
            Spread::of(own.iter().filter_map(|sample| value(&sample.seen)).collect())
        };
        let ratios = own.iter().filter_map(|sample| {
            let beside = reference.iter().find(|of| of.round == sample.round)?;
            Some(sample.seen.per_second? / beside.seen.per_second?)
        });
        Comparison {
            load,
            plan: plan.to_owned(),
            per_second: spread(|seen| seen.per_second),
            ratio: Spread::of(ratios.collect()),
            cpu_us_each: spread(|seen| seen.cpu_us_each),
            cpu_percent: spread(|seen| Some(seen.cpu_percent)),
            watts: spread(|seen| seen.watts),
        }
    }

    /// A table, and what of the plans was not there.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!(
            "{}: {}; median (lowest–highest) of {} rounds\n\n\
             | load | plan | transactions a second | of {REFERENCE}, % | the daemon's CPU time each, µs \
             | its CPU time, % of a CPU | watts |\n|---|---|---|---|---|---|---|",
            self.plan.name,
            self.circumstances.text(),
            self.plan.rounds
        );
        for of in &self.comparisons {
            let cells = [
                cell(of.per_second, 1.0, 0),
                cell(of.ratio, 100.0, 0),
                cell(of.cpu_us_each, 1.0, 1),
                cell(of.cpu_percent, 1.0, 1),
                cell(of.watts, 1.0, 1),
            ];
            let _ = write!(text, "\n| {} | {} | {} |", of.load.text(), of.plan, cells.join(" | "));
        }
        for (plan, missing) in &self.missing {
            for what in missing {
                let _ = write!(text, "\nnot here, {plan}: {what}");
            }
        }
        if let Some(failure) = &self.failure {
            let _ = write!(text, "\n{failure}");
        }
        text
    }
}

fn cell(spread: Option<Spread>, factor: f64, digits: usize) -> String {
    let Some(Spread { lowest, median, highest }) = spread else { return "–".to_owned() };
    let [lowest, median, highest] = [lowest, median, highest].map(|value| value * factor);
    format!("{median:.digits$} ({lowest:.digits$}–{highest:.digits$})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        name = "x"
        folder = "/x"
        disk_mib = 16
        plans = ["balanced", "high-performance"]
        sessions = 1
        window_ms = 100
        rounds = 2
    "#;

    #[test]
    fn plans_are_compared_round_by_round() {
        let plan: Plan = toml::from_str(PLAN).unwrap();
        let mut record = Record::new(&plan);
        let rates = [(0, "balanced", 100.0), (0, "high-performance", 150.0)];
        let slower = [(1, "balanced", 10.0), (1, "high-performance", 20.0)];
        for (round, plan, per_second) in rates.into_iter().chain(slower) {
            let per_second = Some(per_second);
            let seen = Seen { per_second, cpu_us_each: None, cpu_percent: 1.0, watts: None };
            let (plan, load) = (plan.to_owned(), Load::Sessions);
            record.samples.push(Sample { at_s: 0.0, round, plan, load, seen });
        }
        record.compare();
        let summary = record.summary();
        let row = "| TCP requests | high-performance | 20 (20–150) | 150 (150–200) | – | 1.0 (1.0–1.0) | – |";
        assert!(summary.contains(row), "{summary}");
        assert!(summary.contains("| nothing | balanced | – | – | – | – | – |"), "{summary}");
    }
}
