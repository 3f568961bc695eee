//! Kinds `qos-host` and `qos-cluster`: disks of one store whose demand exceeds its capacity, with
//! minimums and maximums that change during the run; on one host, or on nodes that share the store.
//!
//! Limits are those of the document scaled by the ratio of this store's capacity to that of the
//! document's store. The capacity is measured first, without limits.

mod node;
mod record;
mod settings;
mod testbed;
mod values;
mod verdict;

use anyhow::Result;
use suimon_lab_run::{Case, LocalizedText, Measure, Repetition};

use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::requirement::{Requirement, daemon, programs};
use record::{Calibration, Record, StepStart};
pub(super) use settings::Location;
use settings::{Limits, Settings, Step};
use testbed::Testbed;

/// Warm-up before the measurement of the capacity, in seconds.
const WARM_UP_S: u64 = 3;

/// Experiment of kind `qos-host` or `qos-cluster`.
pub(crate) struct Qos {
    settings: Settings,
    location: Location,
}

impl Qos {
    pub(crate) fn new(settings: Settings, location: Location) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings, location })
    }

    fn calibrate(
        &self,
        environment: &Environment<'_>,
        testbed: &mut Testbed<'_>,
        record: &mut Record<'_>,
    ) -> Result<()> {
        let settings = &self.settings;
        environment.poll_each_second(WARM_UP_S, || {
            testbed.read_second(None, true).map(|second| record.seconds.push(second))
        })?;
        let (mut operations, mut span_s) = (0.0, 0.0);
        environment.poll_each_second(settings.calibration_s, || {
            let second = testbed.read_second(None, false)?;
            operations +=
                second.disks.iter().map(|disk| disk.delivered_iops).sum::<f64>() * second.span_s;
            span_s += second.span_s;
            record.seconds.push(second);
            Ok(())
        })?;
        record.calibration = Calibration::new(
            operations / span_s,
            settings.declared_capacity_percent,
            settings.document_iops,
        );
        Ok(())
    }

    fn run_step(
        &self,
        (number, step): (usize, &Step),
        environment: &Environment<'_>,
        testbed: &mut Testbed<'_>,
        record: &mut Record<'_>,
    ) -> Result<()> {
        let Calibration { capacity_iops, scale, .. } = record.calibration;
        let limits: Vec<Limits> = step.limits.iter().map(|limits| limits.scaled(scale)).collect();
        let rejection = testbed.set_limits(capacity_iops, &limits, step.must_be_rejected)?;
        record.seconds.push(testbed.read_second(Some(number), true)?);
        record.steps.push(StepStart { limits, at_s: testbed.at_s(), rejection });
        environment.poll_each_second(self.settings.step_s, || {
            record.seconds.push(testbed.read_second(Some(number), false)?);
            Ok(())
        })
    }
}

impl Experiment for Qos {
    fn requirements(&self) -> Vec<Requirement> {
        let settings = &self.settings;
        let mib = settings.disks().len() as u64 * (settings.disk_mib + 8) * 9 / 8 + 128;
        let mut requirements = [
            daemon(),
            programs(&[("fio", "fio"), ("curl", "curl")]),
            vec![Requirement::FreeMib(mib)],
        ]
        .concat();
        if settings.store_bytes_per_s.is_some() {
            requirements.extend(programs(&[
                ("qemu-storage-daemon", "qemu-system-common"),
                ("nbdfuse", "libnbd-bin"),
                ("losetup", "mount"),
                ("mkfs.ext4", "e2fsprogs"),
            ]));
        }
        if self.location == Location::Cluster {
            requirements.push(Requirement::Program { name: "etcd", package: "etcd-server" });
        }
        requirements
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let settings = &self.settings;
        let (disks, mib) = (settings.disks().len(), settings.disk_mib);
        let (block, depth) = (settings.block_kib, settings.depth);
        let form = format!("{} {}", settings.disk_kind, settings.format.to_uppercase());
        let mut setup = Vec::new();
        setup.push(match self.location {
            Location::Host => LocalizedText::new(
                format!(
                    "{disks} disks ({form}, {mib} MiB) on one suimond, each loaded by fio over \
                     NBD: {block} KiB random writes, {depth} in flight."),
                format!("1 つの suimond に {disks} 台のディスク ({form}、{mib} MiB)。それぞれに fio が NBD で \
                         {block} KiB のランダムライトを行い、同時要求数は {depth} です。"),
            ),
            Location::Cluster => LocalizedText::new(
                format!(
                    "{disks} disks ({form}, {mib} MiB) on {} suimonds that share one store \
                     through an etcd cluster of three members; each disk is loaded by fio over \
                     NBD: {block} KiB random writes, {depth} in flight.", settings.groups.len()),
                format!("1 つのストアを共有する {} つの suimond に {disks} 台のディスク ({form}、{mib} MiB)。ノードは 3 \
                         メンバーの etcd で取り決めます。それぞれのディスクに fio が NBD で {block} KiB のランダムライトを行い、同時要求数は \
                         {depth} です。", settings.groups.len()),
            ),
        });
        if let Some(rate) = settings.store_bytes_per_s {
            let rate = rate as f64 / 1e6;
            setup.push(LocalizedText::new(
                format!(
                    "The store is a disk with a limit of {rate:.1} MB/s: a file behind QEMU's \
                     throttle, over NBD and FUSE to a loop device with ext4."),
                format!("ストアは {rate:.1} MB/s までのディスクです: QEMU の帯域制限の後ろのファイルを NBD と FUSE \
                         経由でループデバイスとし、ext4 を置いています。"),
            ));
        }
        let (declared, document) = (settings.declared_capacity_percent, settings.document_iops);
        setup.push(LocalizedText::new(
            format!(
                "First, the throughput of the store without limits is measured; {declared} % of \
                 it is the declared capacity. All limits of the publication are scaled by the \
                 ratio of this capacity to {document} IOPS, the assumed capacity of the published \
                 array."),
            format!("最初に、何も設定しない状態でストアの能力を測ります。その {declared} % を能力として宣言し、文書の制限値はすべて、文書のアレイの能力とみなす \
                     {document} IOPS に対する比で換算します。"),
        ));
        setup
    }

    fn cases(&self) -> Vec<Case> {
        let settings = &self.settings;
        let steps = settings.steps.len() as u64 * (settings.step_s + 1);
        let bytes = settings.disks().len() as u64 * (settings.disk_mib << 20);
        let written_s = bytes as f64 / settings.store_bytes_per_s.unwrap_or(200_000_000) as f64;
        // The time per case includes some seconds for the start of the store, the daemons and etcd.
        let seconds = (WARM_UP_S + settings.calibration_s + steps) as f64 + written_s + 6.0;
        let words = match self.location {
            Location::Host => LocalizedText::new("one host", "1 ホスト"),
            Location::Cluster => LocalizedText::new("cluster", "クラスタ"),
        };
        vec![Case::new("steps", words, seconds)]
    }

    fn measures(&self) -> Vec<Measure> {
        values::measures(&self.settings)
    }

    fn run(&mut self, _: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let mut testbed = Testbed::set_up(&self.settings, self.location, environment)?;
        let mut record = Record {
            settings: &self.settings,
            calibration: Calibration::new(0.0, 100, 1),
            steps: Vec::new(),
            seconds: Vec::new(),
        };
        self.calibrate(environment, &mut testbed, &mut record)?;
        let profile = environment.start_profiling();
        for step in self.settings.steps.iter().enumerate() {
            self.run_step(step, environment, &mut testbed, &mut record)?;
        }
        drop(profile);
        for (index, log) in testbed.end_load()?.iter().enumerate() {
            record.add_fio(index, log);
        }
        Ok(values::repetition(&record, self.location.settling_time_s()))
    }
}
