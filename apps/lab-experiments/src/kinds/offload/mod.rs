//! Kind `offload`: an FTP server in a guest whose files are downloaded repeatedly by external
//! clients, with checksum and segmentation offload, with checksum offload only, and with neither.
//!
//! The offloads of the guest's NIC and the uplink are changed while the clients continue.

mod settings;

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use suimon_lab_run::{Case, LocalizedText, Measure, MeasureDirection, Repetition, Series};
use suimon_rig::Rig;

use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::loads::ftp::{self, FtpClients, FtpServer};
use crate::loads::lan::{Lan, LanSpec, UPLINK};
use crate::loads::lan_requirements;
use crate::measure::measure;
use crate::requirement::Requirement;
use crate::sampling::{SECOND, Sampler};
pub(crate) use settings::Settings;
use settings::{Combination, Driver, Offload};

/// Setup time of the first case of a driver in seconds: daemon, server, files and clients.
const SET_UP_S: f64 = 3.0;
/// Stages with a separate bar in charts: id of the measure, name of the stage, English and Japanese
/// name. The other stages are summed.
const STAGES: [(&str, &str, &str, &str); 5] = [
    ("stage-copy-in", "copy_in", "copy in", "取り込み"),
    ("stage-segment", "segment", "segment", "分割"),
    ("stage-checksum", "checksum", "checksum", "チェックサム"),
    ("stage-copy-out", "copy_out", "copy out", "書き出し"),
    ("stage-notify", "notify", "notify", "通知"),
];
const OTHER: &str = "stage-other";

/// Experiment of kind `offload`, with the setup that is kept for the next case with the same
/// driver.
pub(crate) struct OffloadFtp {
    settings: Settings,
    testbed: Option<Testbed>,
}

/// Setup with one uplink driver. Fields are dropped in order of declaration.
struct Testbed {
    driver: Driver,
    clients: FtpClients,
    _server: FtpServer,
    lan: Lan,
    _rig: Rig,
}

impl OffloadFtp {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings, testbed: None })
    }

    /// Returns the setup with this uplink driver. Replaces a setup with another driver.
    fn testbed(&mut self, driver: Driver, environment: &Environment<'_>) -> Result<&mut Testbed> {
        let reusable = self.testbed.take().filter(|testbed| testbed.driver == driver);
        let testbed = match reusable {
            Some(testbed) => testbed,
            None => Testbed::set_up(&self.settings, driver, environment)?,
        };
        Ok(self.testbed.insert(testbed))
    }
}

impl Testbed {
    fn set_up(settings: &Settings, driver: Driver, environment: &Environment<'_>) -> Result<Self> {
        let rig = environment.create_large_rig()?;
        let uplink = format!("driver = \"{}\"", driver.driver_key());
        let lan = Lan::set_up(
            &rig,
            LanSpec { guests: 1, workers: settings.workers, uplink: Some(&uplink) },
        )?;
        if driver == Driver::AfXdp {
            // The veth pair computes the checksums, as a physical network requires; by default it
            // omits them.
            lan.external_namespace()?.ethtool(lan.external_device()?, &["tx", "off"])?;
        }
        let guest = lan.guests.first().context("the guest is missing")?;
        let bytes = settings.file_mib << 20;
        let server = FtpServer::start(&rig, &guest.namespace, settings.files, bytes)?;
        environment.check_not_stopped()?;
        let (server_address, world) = (guest.address(), lan.external_namespace()?);
        let clients =
            FtpClients::start(&rig, world, &server_address, settings.clients, settings.files)?;
        Ok(Self { driver, clients, _server: server, lan, _rig: rig })
    }

    fn switch(&self, offload: Offload) -> Result<()> {
        let guest = self.lan.guests.first().context("the guest is missing")?;
        for port in [guest.nic.as_str(), UPLINK] {
            let command = [&["offload", "set", port][..], &offload.command_arguments()].concat();
            self.lan.daemon.ok(&command)?;
        }
        Ok(())
    }

    /// Returns the number of bytes transmitted on the uplink.
    fn sent_bytes(&self) -> Result<u64> {
        let uplink: Value = self.lan.daemon.get(&format!("/1.0/uplinks/{UPLINK}"))?;
        uplink["counters"]["tx_bytes"].as_u64().context("the uplink has no tx_bytes")
    }
}

impl Experiment for OffloadFtp {
    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = lan_requirements();
        requirements.extend(ftp::requirements());
        requirements.push(Requirement::Program { name: "ethtool", package: "ethtool" });
        let mib = self.settings.file_mib * self.settings.files as u64;
        requirements.push(Requirement::FreeMib(mib + 64));
        requirements
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let Settings { workers: processors, files, file_mib, clients, .. } = self.settings;
        vec![
            LocalizedText::new(
                format!(
                    "vsftpd in a namespace guest on an external switch with {processors} unpinned \
                     workers serves {files} files of {file_mib} MiB, all in the page cache; \
                     {clients} clients (curl) behind a veth pair download them in a loop."
                ),
                format!(
                    "CPU に固定しないワーカー {processors} 個の外部スイッチに接続したネームスペースのゲスト の vsftpd が {file_mib} \
                     MiB のファイルを {files} 個 (すべてページキャッシュ上) 持ち、veth の先のクライアント (curl) {clients} \
                     個が繰り返し取得します。"
                ),
            ),
            LocalizedText::new(
                "`suimon offload set` changes the offloads of the guest's NIC and of the uplink \
                 while the clients continue: all on; segmentation off; segmentation and both \
                 checksums off. A veth pair accepts large frames with partial checksums, as a NIC \
                 with both offloads would, and so do the clients behind it: they use the same \
                 CPUs, and have less work with offloads too.",
                "クライアントを動かしたまま `suimon offload set` でゲストの NIC とアップリンクのオフロード設定を変えます \
                 (すべてオン、セグメンテーションだけオフ、セグメンテーションと送受信チェックサムをオフ)。veth は、両方をオフロードする NIC \
                 と同じように大きなフレームと未計算のチェックサムをそのまま受け取ります。同じ CPU を使うクライアントの仕事も、そのぶん減ります。",
            ),
            LocalizedText::new(
                "Stages are the time that workers account themselves; the work of the guest's \
                 kernel, of the server and of the clients is only in the CPU time of the whole \
                 machine.",
                "ステージはワーカー自身の時間の記録です。ゲストのカーネル、サーバー、クライアントの仕事はマシン全体の CPU 時間にだけ含まれます。",
            ),
        ]
    }

    fn cases(&self) -> Vec<Case> {
        let Settings { warm_up_seconds, seconds, .. } = self.settings;
        let seconds = (warm_up_seconds + seconds) as f64 + SET_UP_S;
        let combinations = self.settings.combinations().into_iter();
        combinations
            .map(|combination| Case::new(combination.id(), combination.description(), seconds))
            .collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let mut measures = vec![
            measure("sent", "sent", "送信", "Mbit/s", MeasureDirection::Higher)
                .with_repetition_count_determined(),
            measure(
                "cpu",
                "CPU of the whole machine",
                "マシン全体の CPU",
                "%",
                MeasureDirection::Lower,
            ),
            measure(
                "cpu-byte",
                "CPU time per byte, whole machine",
                "1 バイトあたりの CPU 時間 (マシン全体)",
                "ns",
                MeasureDirection::Lower,
            )
            .with_repetition_count_determined(),
            measure(
                "switch-byte",
                "CPU time per byte, the daemon",
                "1 バイトあたりの CPU 時間 (デーモン)",
                "ns",
                MeasureDirection::Lower,
            ),
        ];
        for (id, _, en, ja) in STAGES {
            measures.push(measure(id, en, ja, "ns/KiB", MeasureDirection::Lower));
        }
        measures.push(measure(OTHER, "other stages", "その他", "ns/KiB", MeasureDirection::Lower));
        measures
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let Combination { driver, offload } = self.settings.combination(&case.id)?;
        let Settings { warm_up_seconds, seconds, .. } = self.settings;
        let testbed = self.testbed(driver, environment)?;
        testbed.switch(offload)?;
        environment.wait(Duration::from_secs(warm_up_seconds))?;
        let profile = environment.start_profiling();
        let mut sampler = Sampler::begin(Some(&testbed.lan.daemon))?;
        let before = testbed.sent_bytes()?;
        let (mut last, mut rates) = (before, Vec::new());
        for second in 1..=seconds {
            sampler.sample_for(environment, SECOND, SECOND)?;
            let now = testbed.sent_bytes()?;
            rates.push((second as f64, now.saturating_sub(last) as f64 * 8.0 / 1e6));
            last = now;
        }
        drop(profile);
        let mut part = part(&sampler, last.saturating_sub(before) as f64);
        part.series.push(Series {
            group: "carried".to_owned(),
            name: "uplink".to_owned(),
            unit: "Mbit/s".to_owned(),
            points: rates,
        });
        testbed.clients.check().context("an FTP client failed")?;
        Ok(part)
    }
}

fn part(sampler: &Sampler<'_>, bytes: f64) -> Repetition {
    let mut part = Repetition { series: sampler.series(), ..Repetition::default() };
    let sums = sampler.resource_usage();
    let bytes = bytes.max(1.0);
    part.set_value("sent", bytes * 8.0 / 1e6 / sums.span_s);
    part.set_value("cpu", sums.cpu_percent);
    part.set_value("cpu-byte", sums.cpu_ns / bytes);
    part.set_value("switch-byte", (sums.workers_ns + sums.control_ns) / bytes);
    let mut other = 0.0;
    for (stage, ns) in sums.busy_stages() {
        let ns_per_kib = ns / bytes * 1024.0;
        match STAGES.iter().find(|(_, name, ..)| *name == stage) {
            Some((id, ..)) => part.set_value(id, ns_per_kib),
            None => other += ns_per_kib,
        }
    }
    part.set_value(OTHER, other);
    part
}
