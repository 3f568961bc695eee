//! Kind `offload`: an FTP server in a light guest, clients outside, and offloads that are switched
//! for the guest's NIC and the uplink while it runs.

mod scene;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use suimon_rig::Rig;

use crate::experiment::{Desk, Experiment, Need};
use crate::kinds::bounds::check_bounds;
use crate::loads::ftp::FtpServer;
use crate::loads::lan_needs;
use crate::record::{Better, Case, Measure, Part, Series};
use crate::sampling::{SECOND, Sampler};
use crate::words::Words;
use scene::Scene;

/// `[settings]` of plans of kind `offload`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Of the server, 1 to 64.
    files: u32,
    /// Of each, 1 to 1024.
    file_mib: u64,
    /// 1 to 512.
    clients: u32,
    /// What each client takes at most in the cases with a rate, in bits a second.
    client_bps: u64,
    /// Whether the same is measured without a rate, too.
    unlimited: bool,
    warm_up_s: u64,
    measure_s: u64,
}

/// What is offloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offloads {
    All,
    Checksum,
    None,
}

impl Offloads {
    const EVERY: [Self; 3] = [Self::None, Self::Checksum, Self::All];

    const fn id(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Checksum => "checksum",
            Self::None => "none",
        }
    }

    fn words(self) -> Words {
        match self {
            Self::All => {
                Words::new("checksum and segmentation", "チェックサムとセグメンテーション")
            }
            Self::Checksum => Words::new("checksum only", "チェックサムのみ"),
            Self::None => Words::new("none", "なし"),
        }
    }

    /// What `suimon offload set` is told.
    fn switches(self) -> [&'static str; 4] {
        match self {
            Self::All => {
                ["tx_checksum=on", "rx_checksum=on", "segmentation=on", "receive_coalescing=on"]
            }
            Self::Checksum => {
                ["tx_checksum=on", "rx_checksum=on", "segmentation=off", "receive_coalescing=off"]
            }
            Self::None => {
                ["tx_checksum=off", "rx_checksum=off", "segmentation=off", "receive_coalescing=off"]
            }
        }
    }
}

/// Stages of processors that bytes go through.
const STAGES: [(&str, &str, &str); 7] = [
    ("copy_in", "taking frames in", "フレームの受け取り"),
    ("classify", "deciding where to", "宛先の決定"),
    ("coalesce", "joining segments", "セグメントの結合"),
    ("segment", "cutting segments", "セグメント分割"),
    ("checksum", "checksums", "チェックサム計算"),
    ("copy_out", "handing frames out", "フレームの送り出し"),
    ("notify", "waking", "通知"),
];

/// The experiment. What is set up stays for all cases.
pub(crate) struct Offload {
    settings: Settings,
    scene: Option<(Scene, Rig)>,
}

impl Offload {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        check_bounds(&[
            ("files", settings.files.into(), 1, 64),
            ("file_mib", settings.file_mib, 1, 1024),
            ("clients", settings.clients.into(), 1, 512),
            ("client_bps", settings.client_bps, 80_000, 100_000_000_000),
            ("warm_up_s", settings.warm_up_s, 1, 60),
            ("measure_s", settings.measure_s, 2, 3600),
        ])?;
        Ok(Self { settings, scene: None })
    }

    /// Whether a rate holds, and what is offloaded.
    fn combinations(&self) -> Vec<(bool, Offloads)> {
        let rates = if self.settings.unlimited { &[true, false][..] } else { &[true][..] };
        rates.iter().flat_map(|has_rate| Offloads::EVERY.map(|of| (*has_rate, of))).collect()
    }
}

fn id(has_rate: bool, offloads: Offloads) -> String {
    format!("{}+{}", if has_rate { "rate" } else { "free" }, offloads.id())
}

impl Experiment for Offload {
    fn needs(&self) -> Vec<Need> {
        let mut needs = FtpServer::needs();
        needs.extend(lan_needs());
        needs
    }

    fn setup(&self) -> Vec<Words> {
        let Settings { files, file_mib, clients, client_bps, .. } = self.settings;
        let rate = client_bps as f64 * f64::from(clients) / 1e6;
        vec![
            Words::new(
                format!(
                    "vsftpd in a light guest serves {files} files of {file_mib} MiB; {clients} clients (curl) outside get them again and again, over a switch whose uplink is one veth pair. With a rate they ask for {rate:.0} Mbit/s together, as the published NICs' wires allowed no more than they could carry; without one CPUs are the limit."
                ),
                format!(
                    "軽量ゲストの vsftpd が {file_mib} MiB のファイル {files} 個を配り、外の {clients} クライアント (curl) が繰り返し取得します。スイッチのアップリンクは veth 1 組です。レートありでは合計 {rate:.0} Mbit/s を要求します (公表実験では NIC の回線が上限でした)。レートなしでは CPU が上限です。"
                ),
            ),
            Words::new(
                "Offloads are switched for the guest's NIC and for the uplink, live, by `suimon offload set`. What a NIC's hardware would do, nobody does on a veth pair: large frames and unfinished checksums go through it as they are.",
                "オフロードはゲストの NIC とアップリンクの両方で `suimon offload set` により稼働中に切り替えます。ハードウェアが行うはずの処理は veth では誰も行わず、大きなフレームと未完のチェックサムがそのまま通ります。",
            ),
            Words::new(
                "CPU time is that of the whole machine without the clients' own; what the kernel does for clients to receive is in it, which the published figures do not have.",
                "CPU 時間はクライアントのプロセスを除くマシン全体のものです。クライアント側の受信処理 (カーネル) は含まれ、これは公表値には含まれません。",
            ),
        ]
    }

    fn cases(&self) -> Vec<Case> {
        let seconds = (self.settings.warm_up_s + self.settings.measure_s) as f64 + 2.0;
        let case = |(has_rate, offloads): (bool, Offloads)| {
            let Words { en, ja } = offloads.words();
            let words = match has_rate {
                true => Words::new(format!("{en}, with a rate"), format!("{ja}、レートあり")),
                false => Words::new(format!("{en}, without a rate"), format!("{ja}、レートなし")),
            };
            Case::new(id(has_rate, offloads), words, seconds)
        };
        self.combinations().into_iter().map(case).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let mut measures = vec![
            Measure::new(
                "throughput",
                Words::new("throughput", "スループット"),
                "Mbit/s",
                Better::Higher,
            )
            .deciding(),
            Measure::new("cpu", Words::new("CPU use", "CPU 使用率"), "%", Better::Lower).deciding(),
            Measure::new(
                "cpu-byte",
                Words::new("CPU time of a kilobyte", "1 KB あたりの CPU 時間"),
                "ns/KB",
                Better::Lower,
            ),
        ];
        for (stage, en, ja) in STAGES {
            measures.push(Measure::new(
                &measure_of(stage),
                Words::new(en, ja),
                "ns/KB",
                Better::Lower,
            ));
        }
        let rest = Words::new("guest, kernel and the rest", "ゲスト・カーネル・その他");
        measures.push(Measure::new("stage-rest", rest, "ns/KB", Better::Lower));
        measures
    }

    fn run(&mut self, case: &Case, desk: &Desk<'_>) -> Result<Part> {
        let combinations = self.combinations();
        let combination =
            combinations.into_iter().find(|(has_rate, of)| id(*has_rate, *of) == case.id);
        let (has_rate, offloads) = combination.context("no such case")?;
        if self.scene.is_none() {
            let rig = desk.large_rig()?;
            let Settings { files, file_mib, .. } = self.settings;
            self.scene = Some((Scene::set(&rig, files, file_mib)?, rig));
        }
        let (scene, rig) = self.scene.as_mut().context("nothing is set up")?;
        scene.switch(&offloads.switches())?;
        let rate = has_rate.then_some(self.settings.client_bps / 8);
        let mut clients = scene.load(rig, self.settings.clients, rate)?;
        desk.wait(Duration::from_secs(self.settings.warm_up_s))?;
        let (bytes, own) = (scene.bytes()?, clients.cpu_time()?);
        let mut sampler = Sampler::begin(Some(&scene.lan.daemon))?;
        let mut throughput = Vec::new();
        let mut last = bytes;
        for second in 1..=self.settings.measure_s {
            sampler.watch(desk, SECOND, SECOND)?;
            let now = scene.bytes()?;
            throughput.push((second as f64, (now - last) * 8.0 / 1e6));
            last = now;
        }
        let (got, own) = ((last - bytes).max(1.0), clients.cpu_time()?.saturating_sub(own));
        clients.check()?;
        let sums = sampler.sums();
        let mut part = Part { series: sampler.series(), ..Part::default() };
        part.series.push(Series {
            group: "throughput".to_owned(),
            name: "FTP".to_owned(),
            unit: "Mbit/s".to_owned(),
            points: throughput,
        });
        let used_ns = (sums.cpu_ns - own.as_nanos() as f64).max(0.0);
        let all_ns = sums.span_s * 1e9 * crate::machine::cpus() as f64;
        part.value("throughput", got * 8.0 / 1e6 / sums.span_s);
        part.value("cpu", used_ns / all_ns * 100.0);
        part.value("cpu-byte", used_ns / got * 1e3);
        stages(&mut part, &sums.stages_ns, used_ns, got);
        Ok(part)
    }
}

fn measure_of(stage: &str) -> String {
    format!("stage-{}", stage.replace('_', "-"))
}

/// What each stage of the processors takes for a kilobyte, and all that is none of them.
fn stages(part: &mut Part, stages_ns: &BTreeMap<String, f64>, used_ns: f64, bytes: f64) {
    let mut rest = used_ns;
    for (stage, _, _) in STAGES {
        let ns = stages_ns.get(stage).copied().unwrap_or(0.0);
        part.value(&measure_of(stage), ns / bytes * 1e3);
        rest -= ns;
    }
    part.value("stage-rest", rest.max(0.0) / bytes * 1e3);
}
