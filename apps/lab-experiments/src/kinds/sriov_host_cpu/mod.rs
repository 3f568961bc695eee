//! Kind `sriov-host-cpu`: host CPU time for traffic between a guest and a peer behind the adapter,
//! through the switch and through a virtual function (VF).
//!
//! A case is a path and a direction. The machine with the adapter is booted for the first
//! repetition and kept.

mod path;
mod settings;
mod testbed;

use anyhow::{Context, Result};
use suimon_lab_run::{Case, LocalizedText, Measure, MeasureDirection, Repetition};

use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::requirement::{Requirement, daemon, programs};
use path::{Direction, Path};
use settings::Settings;
use testbed::Testbed;

/// Stages of a worker's time, as reported by the daemon.
const STAGES: [&str; 8] =
    ["copy_in", "classify", "coalesce", "segment", "checksum", "copy_out", "notify", "poll"];

/// Experiment of kind `sriov-host-cpu`.
pub(crate) struct SriovHostCpu {
    settings: Settings,
    testbed: Option<Testbed>,
}

/// Combinations of path and direction, one per case.
const COMBINATIONS: [(Path, Direction); 4] = [
    (Path::Switch, Direction::Sends),
    (Path::Vf, Direction::Sends),
    (Path::Switch, Direction::Receives),
    (Path::Vf, Direction::Receives),
];

impl SriovHostCpu {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings, testbed: None })
    }
}

fn id((path, direction): (Path, Direction)) -> &'static str {
    match (direction, path) {
        (Direction::Sends, Path::Switch) => "sends+switch",
        (Direction::Sends, Path::Vf) => "sends+vf",
        (Direction::Receives, Path::Switch) => "receives+switch",
        (Direction::Receives, Path::Vf) => "receives+vf",
    }
}

fn words((path, direction): (Path, Direction)) -> LocalizedText {
    match (direction, path) {
        (Direction::Sends, Path::Switch) => {
            LocalizedText::new("transmit through the switch", "スイッチで送信")
        }
        (Direction::Sends, Path::Vf) => LocalizedText::new("transmit through a VF", "VF で送信"),
        (Direction::Receives, Path::Switch) => {
            LocalizedText::new("receive through the switch", "スイッチで受信")
        }
        (Direction::Receives, Path::Vf) => LocalizedText::new("receive through a VF", "VF で受信"),
    }
}

/// Returns the id of a stage's measure.
fn stage_id(stage: &str) -> String {
    format!("stage-{}", stage.replace('_', "-"))
}

impl Experiment for SriovHostCpu {
    fn requirements(&self) -> Vec<Requirement> {
        [
            daemon(),
            programs(&[
                ("qemu-system-x86_64", "qemu-system-x86"),
                ("busybox", "busybox-static"),
                ("iperf3", "iperf3"),
                ("ip", "iproute2"),
            ]),
        ]
        .concat()
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let mib = self.settings.transfer_mib;
        vec![
            LocalizedText::new(
                format!(
                    "A QEMU machine with one CPU and an emulated 82576 adapter runs suimond. A \
                     namespace with a TAP device on the switch, or one with a VF, exchanges {mib} \
                     MiB by iperf3 with a third namespace that has another VF; in both cases the \
                     adapter forwards the frames internally."
                ),
                format!(
                    "CPU 1 個とエミュレートされた 82576 を持つ QEMU のマシンの中で suimond が動きます。スイッチの TAP \
                     を持つネームスペース、または VF を持つネームスペースが、別の VF を持つ 3 つ目のネームスペースと iperf3 で {mib} MiB \
                     をやり取りします。フレームはどちらもアダプターの中で折り返します。"
                ),
            ),
            LocalizedText::new(
                "Without hardware virtualization, all CPUs and the adapter are emulated: only \
                 ratios of both paths are meaningful, not absolute figures. The work of the \
                 adapter itself is in no figure.",
                "ハードウェア仮想化がなければ CPU もアダプターも命令変換で動くため、絶対値に意味はなく、2 \
                 つの経路の比だけが意味を持ちます。アダプター自体の処理はどの数値にも含まれません。",
            ),
        ]
    }

    fn cases(&self) -> Vec<Case> {
        // Assumes 100 Mbit/s with an emulated CPU. The first repetition includes the boot of the
        // machine.
        let seconds = self.settings.transfer_mib as f64 * 8.0 / 100.0 + 10.0;
        COMBINATIONS
            .iter()
            .map(|combination| Case::new(id(*combination), words(*combination), seconds))
            .collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let processors = LocalizedText::new("all workers of the host", "ホストの全ワーカー");
        let machine =
            LocalizedText::new("the whole machine, guests included", "ゲストを含むマシン全体");
        let mut measures = vec![
            Measure::new(
                "carried",
                LocalizedText::new("carried", "転送量"),
                "Mbit/s",
                MeasureDirection::Higher,
            ),
            Measure::new("processors", processors, "ns/B", MeasureDirection::Lower),
            Measure::new("machine", machine, "ns/B", MeasureDirection::Lower),
        ];
        for stage in STAGES {
            let name = stage.replace('_', " ");
            let words = LocalizedText::new(format!("stage {name}"), format!("ステージ {name}"));
            measures.push(Measure::new(&stage_id(stage), words, "ns/B", MeasureDirection::Lower));
        }
        measures
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let combination = COMBINATIONS
            .into_iter()
            .find(|combination| id(*combination) == case.id)
            .context("unknown case")?;
        let mut testbed = match self.testbed.take() {
            Some(testbed) => testbed,
            None => {
                environment.show_progress("boots a machine with an adapter");
                Testbed::set_up(environment)?
            }
        };
        environment.check_not_stopped()?;
        let sample = testbed.measure(combination, self.settings.transfer_mib)?;
        self.testbed = Some(testbed);
        let per_byte = |ns: u64| ns as f64 / sample.bytes as f64;
        let mut part = Repetition::default();
        part.set_value("carried", sample.bits_per_second / 1e6);
        part.set_value("processors", per_byte(sample.stages_ns.values().sum()));
        part.set_value("machine", per_byte(sample.machine_cpu_ns));
        for stage in STAGES {
            let ns = sample.stages_ns.get(stage).copied().unwrap_or(0);
            part.set_value(&stage_id(stage), per_byte(ns));
        }
        Ok(part)
    }
}
