//! Kind `tiles`: each tile consists of a Java, a database, a web and an idle VM, all namespace
//! guests on one switch with disks of one store. A case is a number of tiles, all loaded at once.
//!
//! Each repetition first measures one VM of each kind alone, so that a score relates values that
//! were measured in succession.

mod load;
mod score;
mod settings;
mod testbed;

use anyhow::{Context, Result};
use suimon_lab_run::{Case, LocalizedText, Measure, MeasureDirection, Repetition};
use suimon_rig::Rig;

use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::loads::database::Database;
use crate::loads::java::OrderEntry;
use crate::measure::measure;
use crate::requirement::Requirement;
use load::Load;
use score::Score;
use settings::Settings;
use testbed::Testbed;

/// Experiment of kind `tiles`.
pub(crate) struct Tiles {
    settings: Settings,
    compiled: Option<(OrderEntry, Rig)>,
}

impl Tiles {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings, compiled: None })
    }

    fn sentences(&self) -> [(String, String); 2] {
        let Settings { vcpus, threads, connections, heap_mib, .. } = self.settings;
        [
            (
                format!(
                    "A tile is four namespace guests on one switch: a JVM that processes orders \
                     (heap {heap_mib} MiB), MariaDB queried by sysbench with {threads} threads, \
                     nginx with CGI queried by wrk with the profile STD-CGI over {connections} \
                     connections, and an idle guest. Each of the first three may use {vcpus} \
                     CPU(s), by affinity. Database files are on disks of one Suimon store, over \
                     NBD; the load generators run in a guest of the same switch and have no CPUs \
                     of their own."
                ),
                format!(
                    "1 タイルは 1 つのスイッチ上のネームスペースのゲスト 4 つです。注文を処理する JVM (ヒープ {heap_mib} MiB)、sysbench が \
                     {threads} スレッドで問い合わせる MariaDB、wrk が STD-CGI のプロファイルで {connections} \
                     接続から問い合わせる nginx (CGI あり)、何もしないゲストです。前の 3 つは CPU を {vcpus} 個ずつ使えます \
                     (アフィニティ)。データベースのファイルは 1 つの Suimon ストアのディスクに NBD \
                     経由で置きます。負荷をかける側も同じスイッチのゲストで、専用の CPU は持ちません。"
                ),
            ),
            (
                "Score of a VM: its throughput divided by that of the first tile's VM measured \
                 immediately before while all others are idle. The score of a tile is the mean of \
                 its three VMs, that of the system the sum over tiles. Scores are not vServCon \
                 points: their reference is this machine, not that of the publication.".to_owned(),
                "スコア: タイルの 3 つの VM それぞれについて、毎秒の処理量を、直前に測った「他がすべて空いているときの 1 \
                 番目のタイルの値」で割ります。タイルのスコアは 3 つの平均、システムのスコアはタイルの合計です。基準はこのマシン自身であり、文書の vServCon \
                 の点数とは比べられません。".to_owned(),
            ),
        ]
    }
}

impl Experiment for Tiles {
    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = OrderEntry::requirements();
        requirements.extend(Database::requirements());
        requirements.extend(crate::loads::web::requirements());
        requirements.extend(Database::testbed_requirements());
        let max_tiles = self.settings.tiles.iter().copied().max().unwrap_or(1);
        requirements.push(Requirement::FreeMib(Testbed::disks_mib(&self.settings, max_tiles) * 2));
        requirements
    }

    fn setup(&self) -> Vec<LocalizedText> {
        self.sentences().map(|(en, ja)| LocalizedText::new(en, ja)).to_vec()
    }

    fn cases(&self) -> Vec<Case> {
        let span = self.settings.warm_up_s + self.settings.measure_s;
        let case = |tiles: &usize| {
            let s = if *tiles == 1 { "" } else { "s" };
            let words = LocalizedText::new(format!("{tiles} tile{s}"), format!("{tiles} タイル"));
            // Three measurements of single VMs and one of all tiles. A JVM and each database take
            // some seconds to start.
            Case::new(format!("tiles.{tiles}"), words, (4 * (span + 2) + 7 * *tiles as u64) as f64)
        };
        self.settings.tiles.iter().map(case).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            measure("score", "score", "スコア", "", MeasureDirection::Higher)
                .with_repetition_count_determined(),
            measure(
                "least",
                "lowest score of a tile",
                "最も低いタイルのスコア",
                "",
                MeasureDirection::Higher,
            ),
            measure("java", "Java VMs", "Java VM", "", MeasureDirection::Higher),
            measure("database", "database VMs", "データベース VM", "", MeasureDirection::Higher),
            measure("web", "web VMs", "Web VM", "", MeasureDirection::Higher),
            measure("java-alone", "Java VM alone", "Java VM 単独", "/s", MeasureDirection::Higher),
            measure(
                "database-alone",
                "database VM alone",
                "データベース VM 単独",
                "/s",
                MeasureDirection::Higher,
            ),
            measure("web-alone", "web VM alone", "Web VM 単独", "/s", MeasureDirection::Higher),
            measure("host-cpu", "CPU of the host", "ホストの CPU", "%", MeasureDirection::None),
            measure(
                "errors",
                "repeated or failed requests",
                "再実行・失敗した要求",
                "",
                MeasureDirection::Lower,
            ),
            measure("watts", "power", "消費電力", "W", MeasureDirection::Lower),
            measure(
                "power-score",
                "score per watt",
                "ワットあたりのスコア",
                "/W",
                MeasureDirection::Higher,
            ),
        ]
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let tiles = self.settings.tiles.iter().find(|tiles| case.id == format!("tiles.{tiles}"));
        let tiles = *tiles.context("unknown case")?;
        if self.compiled.is_none() {
            let rig = environment.create_rig()?;
            self.compiled = Some((OrderEntry::compile(&rig)?, rig));
        }
        let (program, _) = self.compiled.as_ref().context("the Java program is not compiled")?;
        let rig = environment.create_large_rig()?;
        let mut testbed = Testbed::set_up(&rig, &self.settings, tiles, environment)?;
        let load = Load { rig: &rig, program, settings: &self.settings, environment };
        for tile in &mut testbed.tiles {
            environment.check_not_stopped()?;
            tile.database.prepare(&testbed.client.namespace, load.transactions())?;
        }
        let solo_rates = load.measure_solo(&mut testbed)?;
        let result = load.run_all(&mut testbed)?;
        let score = Score::compute(&result.tiles, &solo_rates);
        let mut part = Repetition::default();
        part.set_value("score", score.system);
        part.set_value("least", score.lowest);
        for (measure, sum) in ["java", "database", "web"].into_iter().zip(score.by_vm_kind) {
            part.set_value(measure, sum);
        }
        part.set_value("java-alone", solo_rates.java);
        part.set_value("database-alone", solo_rates.database);
        part.set_value("web-alone", solo_rates.web);
        part.set_value("errors", result.errors);
        part.set_value("host-cpu", result.resource_usage.cpu_percent);
        part.series = result.series;
        match result.resource_usage.watts {
            Some(watts) => {
                part.set_value("watts", watts);
                part.set_value("power-score", score.system / watts);
            }
            None => part.notes.push(LocalizedText::new(
                "This machine reports no power, so there is no power score.",
                "このマシンでは消費電力がわからないため、電力あたりのスコアはありません。",
            )),
        }
        Ok(part)
    }
}
