//! Kind `java`: a JVM that processes orders, with several numbers of CPUs and both page sizes.
//!
//! The load uses CPU and memory only and no part of Suimon, so it characterises the machine before
//! any I/O.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use suimon_lab_run::{Case, LocalizedText, Measure, MeasureDirection, Repetition, Series};
use suimon_rig::Rig;

use crate::bounds::check_bounds;
use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::loads::java::{OrderEntry, OrderLoad};
use crate::loads::vcpus::Vcpus;
use crate::loads::vcpus::available_cpus;
use crate::requirement::Requirement;

/// Table `[settings]` of plans of kind `java`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Numbers of CPUs, 1 to 64 each. Numbers above that of the machine are omitted.
    vcpus: Vec<usize>,
    /// Size of the heap in MiB, 64 to 65 536.
    heap_mib: u32,
    warm_up_s: u64,
    measure_s: u64,
}

/// Experiment of kind `java`.
pub(crate) struct Java {
    settings: Settings,
    compiled: Option<(OrderEntry, Rig)>,
}

impl Java {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        check_bounds(&[
            ("vcpus", settings.vcpus.len() as u64, 1, 8),
            ("heap_mib", settings.heap_mib.into(), 64, 65_536),
            ("warm_up_s", settings.warm_up_s, 1, 600),
            ("measure_s", settings.measure_s, 2, 3600),
        ])?;
        for vcpus in &settings.vcpus {
            check_bounds(&[("vcpus", *vcpus as u64, 1, 64)])?;
        }
        Ok(Self { settings, compiled: None })
    }

    /// Returns the combinations of the cases: number of CPUs, and true with huge pages.
    fn combinations(&self) -> Vec<(usize, bool)> {
        let cpus = available_cpus();
        let vcpu_counts = self.settings.vcpus.iter().filter(|count| **count <= cpus);
        vcpu_counts.flat_map(|count| [false, true].map(|pages| (*count, pages))).collect()
    }
}

fn id(vcpus: usize, has_huge_pages: bool) -> String {
    format!("{vcpus}-vcpu+{}", if has_huge_pages { "huge-pages" } else { "small-pages" })
}

impl Experiment for Java {
    fn requirements(&self) -> Vec<Requirement> {
        OrderEntry::requirements()
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let heap = self.settings.heap_mib;
        vec![
            LocalizedText::new(
                format!(
                    "One JVM with a heap of {heap} MiB. For each of its CPUs, a thread with its \
                     own warehouse (an in-memory H2 database) processes new orders, payments, \
                     queries of status and stock, and deliveries. CPUs are assigned by affinity. \
                     This is not SPECjbb, and the figures are not SPEC results."
                ),
                format!(
                    "ヒープ {heap} MiB の JVM 1 つ。CPU ごとに 1 スレッドが自分の倉庫 (メモリ上の H2 データベース) \
                     を持ち、新規注文、支払い、状態と在庫の照会、配送を処理します。CPU はアフィニティで割り当てます。SPECjbb ではなく、数値は SPEC \
                     のものではありません。"
                ),
            ),
            LocalizedText::new(
                "The publication compares operating systems and CPUs, of which this machine has \
                 one each. Comparable here: scaling over CPUs, and the effect of the page size, \
                 which is part of the effect of nested paging.",
                "文書は OS の世代と CPU を比較していますが、ここにはそれぞれ 1 つしかありません。ここで比べられるのは CPU \
                 数に対する伸びと、ネステッドページングにも関わるページサイズの効果です。",
            ),
        ]
    }

    fn cases(&self) -> Vec<Case> {
        let seconds = (self.settings.warm_up_s + self.settings.measure_s) as f64 + 3.0;
        let case = |(vcpus, pages): (usize, bool)| {
            let words = match pages {
                true => LocalizedText::new(
                    format!("{vcpus} vCPU, huge pages"),
                    format!("{vcpus} vCPU、ラージページ"),
                ),
                false => LocalizedText::new(
                    format!("{vcpus} vCPU, 4 KiB pages"),
                    format!("{vcpus} vCPU、4 KiB ページ"),
                ),
            };
            Case::new(id(vcpus, pages), words, seconds)
        };
        self.combinations().into_iter().map(case).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let operations = LocalizedText::new("operations", "処理数");
        let paused =
            LocalizedText::new("stopped by garbage collection", "ガベージコレクションによる停止");
        vec![
            Measure::new("operations", operations, "/s", MeasureDirection::Higher)
                .with_repetition_count_determined(),
            Measure::new("paused", paused, "%", MeasureDirection::Lower),
        ]
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let combinations = self.combinations();
        let combination =
            combinations.into_iter().find(|(vcpus, pages)| id(*vcpus, *pages) == case.id);
        let (vcpus, has_huge_pages) = combination.context("unknown case")?;
        if self.compiled.is_none() {
            let rig = environment.create_rig()?;
            self.compiled = Some((OrderEntry::compile(&rig)?, rig));
        }
        let (program, rig) = self.compiled.as_ref().context("the Java program is not compiled")?;
        let Settings { heap_mib, warm_up_s, measure_s, .. } = self.settings;
        let load = OrderLoad {
            warehouses: vcpus as u32,
            warm_up_s,
            measure_s,
            heap_mib,
            may_use_huge_pages: has_huge_pages,
        };
        let mut process = program.start(rig, &Vcpus::new(0, vcpus, available_cpus()), load)?;
        environment.wait(Duration::from_secs(warm_up_s))?;
        let profile = environment.start_profiling();
        let result = OrderEntry::finish(&mut process, load, environment)?;
        drop(profile);
        let mut part = Repetition::default();
        part.set_value("operations", result.operations_per_s);
        part.set_value("paused", result.gc_paused_percent);
        part.series.push(Series {
            group: "operations".to_owned(),
            name: "JVM".to_owned(),
            unit: "/s".to_owned(),
            points: result.rate_by_second,
        });
        Ok(part)
    }
}
