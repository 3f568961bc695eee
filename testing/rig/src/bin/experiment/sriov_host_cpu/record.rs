//! What was measured, and a table of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::WAYS;
use super::plan::Plan;
use crate::circumstances::Circumstances;

/// Stages of a processor in the order in which the table has them.
const STAGES: [&str; 8] =
    ["copy_in", "classify", "coalesce", "segment", "checksum", "copy_out", "notify", "poll"];

/// By which way a guest's frames go.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Path {
    Switch,
    Vf,
}

/// What the guest does.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    Sends,
    Receives,
}

/// One stream.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) round: u64,
    pub(crate) path: Path,
    pub(crate) direction: Direction,
    /// Payload that has come.
    pub(crate) bytes: u64,
    pub(crate) bits_per_second: f64,
    /// Time of all processors by stage.
    pub(crate) stages_ns: BTreeMap<String, u64>,
    /// CPU time of everything in the machine, both guests' own included.
    pub(crate) machine_ns: u64,
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "figures of a table")]
    fn per_kib(&self, ns: u64) -> f64 {
        ns as f64 * 1024.0 / self.bytes as f64
    }

    fn processors_ns(&self) -> u64 {
        self.stages_ns.values().sum()
    }
}

/// What is kept.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    plan: Plan,
    pub(crate) circumstances: Circumstances,
    pub(crate) samples: Vec<Sample>,
    /// Why it did not come to its end.
    pub(crate) failure: Option<String>,
}

impl Record {
    pub(crate) fn new(plan: &Plan) -> Self {
        let circumstances = Circumstances::now();
        Self { plan: plan.clone(), circumstances, samples: Vec::new(), failure: None }
    }

    /// Median, lowest and highest of what the samples of a way say.
    fn spread(&self, way: (Path, Direction), of: impl Fn(&Sample) -> f64) -> Option<[f64; 3]> {
        let of_way = self.samples.iter().filter(|sample| (sample.path, sample.direction) == way);
        let mut figures: Vec<f64> = of_way.map(of).collect();
        figures.sort_by(f64::total_cmp);
        Some([*figures.get(figures.len() / 2)?, *figures.first()?, *figures.last()?])
    }

    /// The table, in Markdown.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.plan.name, self.circumstances.text());
        text.push_str("ns of CPU time for each KiB of payload, median (lowest–highest)\n\n");
        text.push_str("| the guest | by | Mbit/s |");
        for stage in STAGES {
            let _ = write!(text, " {} |", stage.replace('_', " "));
        }
        text.push_str(" processors in all | whole machine |\n|---|---|---|");
        text.push_str(&"---|".repeat(STAGES.len() + 2));
        text.push('\n');
        for way in WAYS {
            self.add_row(&mut text, way);
        }
        if let Some(failure) = &self.failure {
            let _ = write!(text, "\nIt did not come to its end: {failure}\n");
        }
        text
    }

    fn add_row(&self, text: &mut String, way: (Path, Direction)) {
        let path = match way.0 {
            Path::Switch => "the switch",
            Path::Vf => "a VF",
        };
        let direction = match way.1 {
            Direction::Sends => "sends",
            Direction::Receives => "receives",
        };
        let _ = write!(text, "| {direction} | {path} |");
        let mut add = |spread: Option<[f64; 3]>| {
            let [median, lowest, highest] = spread.unwrap_or([f64::NAN; 3]);
            let _ = write!(text, " {median:.0} ({lowest:.0}–{highest:.0}) |");
        };
        add(self.spread(way, |sample| sample.bits_per_second / 1e6));
        for stage in STAGES {
            add(self.spread(way, |sample| {
                sample.per_kib(sample.stages_ns.get(stage).copied().unwrap_or(0))
            }));
        }
        add(self.spread(way, |sample| sample.per_kib(sample.processors_ns())));
        add(self.spread(way, |sample| sample.per_kib(sample.machine_ns)));
        text.push('\n');
    }
}
