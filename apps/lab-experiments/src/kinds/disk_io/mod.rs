//! Kind `disk-io`: performance of disks of each format relative to native file access.
//!
//! A case is a disk, an access method and a load. Each measurement of a disk is paired with a
//! native one on the same blocks. The order of the two alternates between repetitions.

mod payload;
mod settings;
mod testbed;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use suimon_lab_run::{Case, LocalizedText, Measure, MeasureDirection, Repetition};

use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::requirement::{Requirement, daemon, programs};
use settings::AccessMethod;
pub(crate) use settings::Settings;
use testbed::Testbed;

/// Targets relative to native access: (smallest queue depth to which the target applies,
/// percentage). The first match applies.
const GOALS: [(u64, f64); 2] = [(4, 97.0), (1, 90.0)];

/// Experiment of kind `disk-io`.
pub(crate) struct DiskIo {
    settings: Settings,
    /// Setup that the first measurement creates and later ones use again.
    testbed: Option<Testbed>,
    /// Number of measurements made so far, by id of the case.
    counts: BTreeMap<String, u32>,
}

impl DiskIo {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings, testbed: None, counts: BTreeMap::new() })
    }

    fn has(&self, predicate: impl Fn(AccessMethod) -> bool) -> bool {
        self.settings.access_methods.iter().any(|method| predicate(*method))
    }
}

/// Returns the target at a queue depth in percent of native access.
fn goal(depth: u64) -> f64 {
    GOALS.iter().find(|(min_depth, _)| depth >= *min_depth).map_or(0.0, |(_, goal)| *goal)
}

impl Experiment for DiskIo {
    fn requirements(&self) -> Vec<Requirement> {
        let settings = &self.settings;
        let locations = u64::from(self.has(|method| method == AccessMethod::Engine))
            + u64::from(self.has(AccessMethod::has_daemon));
        let mib = settings.disk_mib * settings.targets.len() as u64 * locations * 9 / 8 + 64;
        let mut requirements =
            [programs(&[("fio", "fio"), ("losetup", "mount")]), vec![Requirement::FreeMib(mib)]]
                .concat();
        if self.has(AccessMethod::has_daemon) {
            requirements.extend([daemon(), programs(&[("curl", "curl")])].concat());
        }
        if self.has(|method| {
            matches!(method, AccessMethod::VhostUser | AccessMethod::VhostUserWaiting)
        }) {
            requirements.push(Requirement::SuimonProgram("examples/disk_speed"));
        }
        if self.has(|method| method == AccessMethod::Vm) {
            let package = "qemu-system-x86";
            requirements.push(Requirement::Program { name: "qemu-system-x86_64", package });
        }
        requirements
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let Settings { disk_mib, window_ms, .. } = self.settings;
        let names = |words_in: fn(LocalizedText) -> String| -> String {
            let names: Vec<String> = self
                .settings
                .access_methods
                .iter()
                .map(|method| words_in(method.description()))
                .collect();
            names.join(", ")
        };
        vec![
            LocalizedText::new(
                format!(
                    "Disks of {disk_mib} MiB, completely written before the measurement, accessed \
                     by: {}. The path between client and engine has no native counterpart to \
                     compare with.",
                    names(|words| words.en)
                ),
                format!(
                    "あらかじめ全体を書き込んだ {disk_mib} MiB のディスク。接続方法: \
                     {}。クライアントとエンジンの間にあるものは、ネイティブの要求にはないため比較の対象になりません。",
                    names(|words| words.ja)
                ),
            ),
            LocalizedText::new(
                format!(
                    "Native: fio's io_uring engine with direct I/O on the same blocks of the \
                     device, for {window_ms} ms immediately before or after the disk, in turn. \
                     Both submit requests to the file from CPU 1; clients of the daemon run on \
                     CPU 0. For a polling front-end, native is measured again while a busy loop \
                     uses CPU 0, as the front-end does."
                ),
                format!(
                    "ネイティブは、そのディスクが使うブロックそのものに対する fio の io_uring (ページキャッシュなし) で、ディスクの直前または直後に交互に \
                     {window_ms} ms 測ります。ファイルへの要求はどちらも CPU 1 から出し、クライアントは CPU 0 \
                     で動きます。ポーリングするフロントエンドの場合は、フロントエンドと同じように CPU 0 をループで埋めた状態のネイティブも測ります。"
                ),
            ),
        ]
    }

    fn cases(&self) -> Vec<Case> {
        // The time per case: each measurement, and the start and end of fio.
        let seconds = |method: AccessMethod| {
            let measurements = if method.occupies_cpu() { 3.0 } else { 2.0 };
            measurements * (self.settings.window_ms as f64 / 1000.0 + 0.35)
        };
        let subjects = self.settings.combinations().into_iter();
        subjects
            .map(|subject| {
                Case::new(subject.id(), subject.description(), seconds(subject.access_method))
            })
            .collect()
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new(
                "of-native",
                LocalizedText::new("relative to native", "直前・直後のネイティブに対する割合"),
                "%",
                MeasureDirection::Higher,
            )
            .with_repetition_count_determined(),
            Measure::new(
                "rate",
                LocalizedText::new("disk", "ディスク"),
                "MB/s",
                MeasureDirection::Higher,
            ),
            Measure::new(
                "native",
                LocalizedText::new("native", "ネイティブ"),
                "MB/s",
                MeasureDirection::None,
            ),
            Measure::new(
                "of-native-busy",
                LocalizedText::new(
                    "relative to native with a busy client CPU",
                    "クライアントの CPU が埋まっているときのネイティブに対する割合",
                ),
                "%",
                MeasureDirection::Higher,
            ),
            Measure::new(
                "requests",
                LocalizedText::new("requests", "要求数"),
                "/s",
                MeasureDirection::Higher,
            ),
            Measure::new(
                "beyond-goal",
                LocalizedText::new(
                    "difference to the target (97 % from depth 4 on, 90 % below)",
                    "目標 (同時要求数 4 以上で 97 %、未満で 90 %) との差",
                ),
                "points",
                MeasureDirection::Higher,
            ),
        ]
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let subjects = self.settings.combinations();
        let subject = subjects.into_iter().find(|subject| subject.id() == case.id);
        let subject = subject.context("unknown case")?;
        let mut testbed = match self.testbed.take() {
            Some(testbed) => testbed,
            None => {
                environment.show_progress("creates and fills files and disks");
                Testbed::set_up(&self.settings, environment)?
            }
        };
        environment.check_not_stopped()?;
        let count = self.counts.entry(case.id.clone()).or_default();
        *count += 1;
        // After a failure the setup is dropped, since its state is unknown.
        let (iops, native_iops) =
            testbed.measure_with_native(subject, *count % 2 == 1, environment)?;
        let busy_iops = testbed.measure_native_with_busy_cpu(subject)?;
        self.testbed = Some(testbed);
        let megabytes = (subject.pattern.block_kib << 10) as f64 / 1e6;
        let percent = iops / native_iops * 100.0;
        let mut part = Repetition::default();
        part.set_value("of-native", percent);
        part.set_value("rate", iops * megabytes);
        part.set_value("native", native_iops * megabytes);
        if let Some(busy_iops) = busy_iops {
            part.set_value("of-native-busy", iops / busy_iops * 100.0);
        }
        part.set_value("requests", iops);
        part.set_value("beyond-goal", percent - goal(subject.depth));
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::goal;

    #[test]
    fn goals_depend_on_the_depth() {
        assert_eq!([1, 2, 4, 32].map(goal), [90.0, 90.0, 97.0, 97.0]);
    }
}
