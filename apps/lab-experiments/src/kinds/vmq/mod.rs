//! Kind `vmq`: namespace guests, a team of uplinks and a switch behind it. Throughput and the
//! number of queues per worker are recorded each second.
//!
//! A case is a combination of team mode and algorithm. Each repetition executes its phases one
//! after another.

mod load;
mod second_sample;
mod settings;
mod testbed;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use suimon_lab_run::{Case, LocalizedText, Mark, Measure, MeasureDirection, Repetition};

use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::requirement::{Requirement, daemon, programs};
use load::Load;
use second_sample::{add_phase_values, series};
pub(crate) use settings::Settings;
use testbed::Testbed;

/// Time limit for the setup to be ready before the first phase.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// Experiment of kind `vmq`.
pub(crate) struct Vmq {
    settings: Settings,
}

impl Vmq {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings })
    }
}

impl Experiment for Vmq {
    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = [
            daemon(),
            programs(&[
                ("iperf3", "iperf3"),
                ("ethtool", "ethtool"),
                ("ip", "iproute2"),
                ("tc", "iproute2"),
                ("curl", "curl"),
            ]),
        ]
        .concat();
        if self.settings.modes.iter().any(|mode| mode == "lacp") {
            requirements
                .push(Requirement::Program { name: "ovs-vswitchd", package: "openvswitch-switch" });
        }
        requirements
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let Settings { guests, uplinks, workers: processors, max_workers: max_processors, .. } =
            self.settings;
        let mut setup = vec![LocalizedText::new(
            format!(
                "{guests} namespace guests with one NIC each on a switch whose uplink is a team \
                 of {uplinks} veth pairs; {processors} unpinned workers run on the CPUs of this \
                 machine, of which VMQ may initially use {max_processors}."
            ),
            format!(
                "ネームスペースのゲスト {guests} 個が NIC を 1 つずつ持ち、スイッチのアップリンクは veth {uplinks} \
                 組のチームです。{processors} 個の CPU に固定しないワーカーがこのマシンの CPU 上で動き、VMQ は初めそのうち {max_processors} \
                 個まで使えます。"
            ),
        )];
        if let Some(rate) = self.settings.session_bps {
            let rate = rate as f64 / 1e6;
            setup.push(LocalizedText::new(
                format!(
                    "Each TCP session of iperf3 demands {rate} Mbit/s, from the guests to the \
                     outside."),
                format!("iperf3 の TCP セッションはそれぞれ {rate} Mbit/s を要求し、ゲストから外へ流れます。"),
            ));
        }
        setup.push(LocalizedText::new(
            "Behind the team: a bond of Open vSwitch for LACP, a static group by the kernel's \
             traffic control, or the kernel's bridge for a switch-independent team.",
            "チームの先は、LACP では Open vSwitch のボンド、静的チームではカーネルの tc による静的グループ、スイッチ非依存ではカーネルのブリッジです。",
        ));
        setup
    }

    fn cases(&self) -> Vec<Case> {
        let seconds: u64 = self.settings.phases.iter().map(|phase| phase.seconds).sum();
        let combinations = self.settings.combinations().into_iter();
        let case = |combination: settings::Combination<'_>| {
            let words = LocalizedText::untranslated(format!(
                "{}, {}",
                combination.mode, combination.algorithm
            ));
            // The time per case includes some seconds for the start of the daemon, the team and the
            // sessions.
            Case::new(combination.id(), words, seconds as f64 + 8.0)
        };
        combinations.map(case).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let mut measures = Vec::new();
        for (phase_index, phase) in self.settings.phases.iter().enumerate() {
            let LocalizedText { en, ja } = phase.change_description();
            let number = phase_index + 1;
            let mut add = |id: &str, words: LocalizedText, unit: &str, better: MeasureDirection| {
                measures.push(Measure::new(&format!("{id}-{number}"), words, unit, better));
            };
            add(
                "processors",
                LocalizedText::new(
                    format!("workers in use, {en}"),
                    format!("使用ワーカー数、{ja}"),
                ),
                "",
                MeasureDirection::None,
            );
            add(
                "carried",
                LocalizedText::new(format!("throughput, {en}"), format!("転送量、{ja}")),
                "Mbit/s",
                MeasureDirection::Higher,
            );
            add(
                "settled",
                LocalizedText::new(
                    format!("time until the workers in use are stable, {en}"),
                    format!("ワーカー数が安定するまで、{ja}"),
                ),
                "s",
                MeasureDirection::Lower,
            );
            add(
                "lost",
                LocalizedText::new(
                    format!("sessions lost, {en}"),
                    format!("失われたセッション、{ja}"),
                ),
                "",
                MeasureDirection::Lower,
            );
        }
        measures
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let combinations = self.settings.combinations();
        let combination = combinations.into_iter().find(|combination| combination.id() == case.id);
        let combination = combination.context("unknown case")?;
        let rig = environment.create_rig()?;
        let testbed = Testbed::set_up(&rig, &self.settings, combination, READY_LIMIT)?;
        let mut load = Load::default();
        let mut part = Repetition::default();
        let mut seconds = Vec::new();
        let profile = environment.start_profiling();
        let started = Instant::now();
        let mut last = testbed.nic_bytes()?;
        for (number, phase) in (1..).zip(&self.settings.phases) {
            if let Some(max_processors) = phase.max_workers {
                testbed.set_max_workers(max_processors)?;
            }
            load.set(&rig, &testbed, phase.sessions, self.settings.session_bps)?;
            part.marks.push(Mark {
                at_s: started.elapsed().as_secs_f64(),
                description: phase.change_description(),
            });
            let first = seconds.len();
            environment.poll_each_second(phase.seconds, || {
                let now = testbed.nic_bytes()?;
                seconds.push(testbed.read_second(started, &last, &now)?);
                last = now;
                Ok(())
            })?;
            add_phase_values(&mut part, number, seconds.get(first..).unwrap_or_default());
            part.set_value(&format!("lost-{number}"), load.lost_sessions().into());
        }
        drop((profile, load));
        part.series = series(&seconds);
        Ok(part)
    }
}
