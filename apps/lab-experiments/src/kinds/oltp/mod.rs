//! Kind `oltp`: a database in a namespace guest, with its files on a Suimon disk or an alternative,
//! queried by another guest through the switch.

mod testbed;

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use suimon_lab_run::{Case, LocalizedText, Measure, MeasureDirection, Repetition, Series};

use crate::bounds::check_bounds;
use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::loads::database::{Database, Transactions};
use crate::loads::vcpus::available_cpus;
use crate::requirement::Requirement;
use testbed::{DatabaseStorage, Testbed};

/// Table `[settings]` of plans of kind `oltp`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Numbers of CPUs of the database's guest, 1 to 64 each. Numbers above that of the machine are
    /// omitted.
    vcpus: Vec<usize>,
    /// Storage of the database files: `native`, `nbdkit`, `suimon`.
    disks: Vec<DatabaseStorage>,
    /// Size of the disk in MiB, 256 to 65 536.
    disk_mib: u64,
    /// Number of concurrent client threads, 1 to 256.
    threads: u32,
    /// Number of tables, 1 to 64.
    tables: u32,
    /// Rows per table, 100 to 10 million.
    rows: u32,
    warm_up_s: u64,
    measure_s: u64,
}

/// Experiment of kind `oltp`.
pub(crate) struct Oltp {
    settings: Settings,
}

impl Oltp {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        check_bounds(&[
            ("vcpus", settings.vcpus.len() as u64, 1, 8),
            ("disks", settings.disks.len() as u64, 1, 3),
            ("disk_mib", settings.disk_mib, 256, 65_536),
            ("threads", settings.threads.into(), 1, 256),
            ("tables", settings.tables.into(), 1, 64),
            ("rows", settings.rows.into(), 100, 10_000_000),
            ("warm_up_s", settings.warm_up_s, 1, 600),
            ("measure_s", settings.measure_s, 2, 3600),
        ])?;
        for vcpus in &settings.vcpus {
            check_bounds(&[("vcpus", *vcpus as u64, 1, 64)])?;
        }
        Ok(Self { settings })
    }

    fn combinations(&self) -> Vec<(DatabaseStorage, usize)> {
        let cpus = available_cpus();
        let vcpu_counts =
            || self.settings.vcpus.iter().copied().filter(move |count| *count <= cpus);
        self.settings
            .disks
            .iter()
            .flat_map(|disk| vcpu_counts().map(|count| (*disk, count)))
            .collect()
    }
}

fn id(disk: DatabaseStorage, vcpus: usize) -> String {
    format!("{}+{vcpus}-vcpu", disk.id())
}

impl Experiment for Oltp {
    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = Database::requirements();
        requirements.extend(Testbed::requirements(&self.settings.disks));
        requirements.push(Requirement::FreeMib(self.settings.disk_mib * 2));
        requirements
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let Settings { disk_mib, threads, tables, rows, .. } = self.settings;
        vec![
            LocalizedText::new(
                format!(
                    "MariaDB in a namespace guest with the given number of CPUs (by affinity), \
                     its files on an ext4 file system of {disk_mib} MiB; every commit is flushed. \
                     sysbench oltp_read_write with {threads} threads on {tables} tables of {rows} \
                     rows queries it from another namespace guest, through a Suimon switch."
                ),
                format!(
                    "ネームスペースのゲストの MariaDB (CPU はアフィニティで割り当て)。ファイルは {disk_mib} MiB の ext4 \
                     上にあり、コミットごとにフラッシュします。別のネームスペースのゲストから Suimon のスイッチ経由で sysbench oltp_read_write が \
                     {threads} スレッド、{tables} テーブル × {rows} 行で問い合わせます。"
                ),
            ),
            LocalizedText::new(
                "Namespace guests have no disks: Suimon's disk is attached to the host's kernel \
                 over NBD (nbdfuse and a loop device), and nbdkit's file in the same way for \
                 comparison. Native uses the loop device only.",
                "ネームスペースのゲストは自分のディスクを持たないため、Suimon のディスクは NBD (nbdfuse とループデバイス) でホストのカーネルに渡します。比較のため \
                 nbdkit のファイルも同じ経路で測ります。ネイティブはループデバイスだけです。",
            ),
        ]
    }

    fn cases(&self) -> Vec<Case> {
        let seconds = (self.settings.warm_up_s + self.settings.measure_s) as f64 + 12.0;
        let case = |(disk, vcpus): (DatabaseStorage, usize)| {
            let LocalizedText { en, ja } = disk.description();
            Case::new(
                id(disk, vcpus),
                LocalizedText::new(format!("{en}, {vcpus} vCPU"), format!("{ja}、{vcpus} vCPU")),
                seconds,
            )
        };
        self.combinations().into_iter().map(case).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new(
                "transactions",
                LocalizedText::new("transactions", "トランザクション"),
                "/s",
                MeasureDirection::Higher,
            )
            .with_repetition_count_determined(),
            Measure::new(
                "p95",
                LocalizedText::new("95th percentile latency", "95 % のレイテンシ"),
                "ms",
                MeasureDirection::Lower,
            ),
            Measure::new(
                "cpu",
                LocalizedText::new(
                    "CPU time of the daemon per transaction",
                    "トランザクションあたりのデーモンの CPU 時間",
                ),
                "µs",
                MeasureDirection::Lower,
            ),
            Measure::new(
                "errors",
                LocalizedText::new("repeated transactions", "再実行されたトランザクション"),
                "",
                MeasureDirection::Lower,
            ),
        ]
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let combinations = self.combinations();
        let combination =
            combinations.into_iter().find(|(disk, vcpus)| id(*disk, *vcpus) == case.id);
        let (disk, vcpus) = combination.context("unknown case")?;
        let Settings { disk_mib, threads, tables, rows, warm_up_s, measure_s, .. } = self.settings;
        let load = Transactions { threads, tables, rows, warm_up_s, measure_s };
        let rig = environment.create_large_rig()?;
        let mut testbed = Testbed::set_up(&rig, disk, disk_mib, vcpus)?;
        environment.check_not_stopped()?;
        testbed.database.prepare(&testbed.client.namespace, load)?;
        let before = testbed.daemon.process().cpu_time()?;
        let mut asking = testbed.database.start_load(&rig, &testbed.client.namespace, load)?;
        environment.wait(Duration::from_secs(warm_up_s))?;
        let profile = environment.start_profiling();
        let answered = testbed.database.finish(&mut asking, load, environment)?;
        drop(profile);
        let used = testbed.daemon.process().cpu_time()?.saturating_sub(before);
        let requests = answered.transactions_per_s * (warm_up_s + measure_s) as f64;
        let mut part = Repetition::default();
        part.set_value("transactions", answered.transactions_per_s);
        part.set_value("p95", answered.p95_ms);
        part.set_value("cpu", used.as_secs_f64() * 1e6 / requests.max(1.0));
        part.set_value("errors", answered.errors);
        part.series.push(Series {
            group: "transactions".to_owned(),
            name: "sysbench".to_owned(),
            unit: "/s".to_owned(),
            points: answered.rate_by_second,
        });
        Ok(part)
    }
}
