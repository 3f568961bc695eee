//! Kind `tiles`: each tile consists of a Java, a database, a web and an idle VM, all namespace
//! guests on one switch with disks of one store. A case is a number of tiles, all loaded at once.
//!
//! Each part first measures one VM of each kind alone, so that a score relates values that were
//! measured in succession.

mod load;
mod scene;
mod score;

use anyhow::{Context, Result};
use serde::Deserialize;
use suimon_rig::Rig;

use crate::experiment::{Desk, Experiment, Need};
use crate::kinds::bounds::check_bounds;
use crate::loads::database::Database;
use crate::loads::java::OrderEntry;
use crate::record::{Better, Case, Measure, Part};
use crate::words::Words;
use load::Load;
use scene::Scene;
use score::Score;

/// Table `[settings]` of plans of kind `tiles`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Numbers of tiles, 1 to 50 each.
    tiles: Vec<usize>,
    /// CPUs of each application VM, 1 to 64.
    vcpus: usize,
    /// Size of a database's disk in MiB, 256 to 65 536.
    disk_mib: u64,
    /// Number of client threads of each database, 1 to 256.
    threads: u32,
    /// Number of tables, 1 to 64.
    tables: u32,
    /// Rows per table, 100 to 10 million.
    rows: u32,
    /// Number of connections to each web VM, 1 to 1000.
    connections: u32,
    /// Size of a JVM's heap in MiB, 64 to 65 536.
    heap_mib: u32,
    warm_up_s: u64,
    measure_s: u64,
}

/// Experiment of kind `tiles`.
pub(crate) struct Tiles {
    settings: Settings,
    compiled: Option<(OrderEntry, Rig)>,
}

impl Tiles {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        check_bounds(&[
            ("tiles", settings.tiles.len() as u64, 1, 16),
            ("vcpus", settings.vcpus as u64, 1, 64),
            ("disk_mib", settings.disk_mib, 256, 65_536),
            ("threads", settings.threads.into(), 1, 256),
            ("tables", settings.tables.into(), 1, 64),
            ("rows", settings.rows.into(), 100, 10_000_000),
            ("connections", settings.connections.into(), 1, 1000),
            ("heap_mib", settings.heap_mib.into(), 64, 65_536),
            ("warm_up_s", settings.warm_up_s, 1, 600),
            ("measure_s", settings.measure_s, 2, 3600),
        ])?;
        for tiles in &settings.tiles {
            check_bounds(&[("tiles", *tiles as u64, 1, 50)])?;
        }
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
    fn needs(&self) -> Vec<Need> {
        let mut needs = OrderEntry::needs();
        needs.extend(Database::needs());
        needs.extend(crate::loads::web::needs());
        needs.extend(Scene::needs());
        let most = self.settings.tiles.iter().copied().max().unwrap_or(1);
        needs.push(Need::FreeMib(Scene::disks_mib(&self.settings, most) * 2));
        needs
    }

    fn setup(&self) -> Vec<Words> {
        self.sentences().map(|(en, ja)| Words::new(en, ja)).to_vec()
    }

    fn cases(&self) -> Vec<Case> {
        let span = self.settings.warm_up_s + self.settings.measure_s;
        let case = |tiles: &usize| {
            let s = if *tiles == 1 { "" } else { "s" };
            let words = Words::new(format!("{tiles} tile{s}"), format!("{tiles} タイル"));
            // Three measurements of VMs alone and one of all tiles. A JVM and each database take
            // some seconds to start.
            Case::new(format!("tiles.{tiles}"), words, (4 * (span + 2) + 7 * *tiles as u64) as f64)
        };
        self.settings.tiles.iter().map(case).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let measure = |id, en, ja, unit, better| Measure::new(id, Words::new(en, ja), unit, better);
        vec![
            measure("score", "score", "スコア", "", Better::Higher).deciding(),
            measure(
                "least",
                "lowest score of a tile",
                "最も低いタイルのスコア",
                "",
                Better::Higher,
            ),
            measure("java", "Java VMs", "Java VM", "", Better::Higher),
            measure("database", "database VMs", "データベース VM", "", Better::Higher),
            measure("web", "web VMs", "Web VM", "", Better::Higher),
            measure("java-alone", "Java VM alone", "Java VM 単独", "/s", Better::Higher),
            measure(
                "database-alone",
                "database VM alone",
                "データベース VM 単独",
                "/s",
                Better::Higher,
            ),
            measure("web-alone", "web VM alone", "Web VM 単独", "/s", Better::Higher),
            measure("host-cpu", "CPU of the host", "ホストの CPU", "%", Better::Neither),
            measure(
                "errors",
                "repeated or failed requests",
                "再実行・失敗した要求",
                "",
                Better::Lower,
            ),
            measure("watts", "power", "消費電力", "W", Better::Lower),
            measure("power-score", "score per watt", "ワットあたりのスコア", "/W", Better::Higher),
        ]
    }

    fn run(&mut self, case: &Case, desk: &Desk<'_>) -> Result<Part> {
        let tiles = self.settings.tiles.iter().find(|tiles| case.id == format!("tiles.{tiles}"));
        let tiles = *tiles.context("unknown case")?;
        if self.compiled.is_none() {
            let rig = desk.rig()?;
            self.compiled = Some((OrderEntry::compile(&rig)?, rig));
        }
        let (program, _) = self.compiled.as_ref().context("the Java program is not compiled")?;
        let rig = desk.large_rig()?;
        let mut scene = Scene::set(&rig, &self.settings, tiles, desk)?;
        let load = Load { rig: &rig, program, settings: &self.settings, desk };
        for tile in &mut scene.tiles {
            desk.check()?;
            tile.database.prepare(&scene.client.namespace, load.transactions())?;
        }
        let alone = load.alone(&mut scene)?;
        let done = load.together(&mut scene)?;
        let score = Score::of(&done.tiles, &alone);
        let mut part = Part::default();
        part.value("score", score.system);
        part.value("least", score.least);
        for (measure, sum) in ["java", "database", "web"].into_iter().zip(score.kinds) {
            part.value(measure, sum);
        }
        part.value("java-alone", alone.java);
        part.value("database-alone", alone.database);
        part.value("web-alone", alone.web);
        part.value("errors", done.errors);
        part.value("host-cpu", done.sums.cpu_percent);
        part.series = done.series;
        match done.sums.watts {
            Some(watts) => {
                part.value("watts", watts);
                part.value("power-score", score.system / watts);
            }
            None => part.notes.push(Words::new(
                "This machine reports no power, so there is no power score.",
                "このマシンでは消費電力がわからないため、電力あたりのスコアはありません。",
            )),
        }
        Ok(part)
    }
}
