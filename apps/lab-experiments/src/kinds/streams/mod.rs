//! Kind `streams`: TCP streams between VMs of one host, or between a VM and the external network,
//! with several block sizes; through Suimon's switch, the kernel's bridge, or no switch.
//!
//! A case is a network path, a set of senders and receivers, and a block size.

mod load;
mod settings;
mod testbed;

use std::time::Duration;

use anyhow::{Context, Result};
use suimon_lab_run::{Case, LocalizedText, Measure, MeasureDirection, Repetition};

use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::loads::lan_requirements;
use crate::measure::measure;
use crate::requirement::Requirement;
use crate::sampling::{SECOND, Sampler};
use load::{BroadcastCapture, Load};
pub(crate) use settings::Settings;
use settings::{Endpoints, NetworkPath};
use testbed::{Endpoint, Testbed};

/// Setup time of a case in seconds.
const SET_UP_S: f64 = 2.0;

/// Experiment of kind `streams`.
pub(crate) struct Streams {
    settings: Settings,
}

impl Streams {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings })
    }

    fn passes(&self, path: NetworkPath) -> bool {
        self.settings.combinations().iter().any(|combination| combination.path == path)
    }
}

impl Experiment for Streams {
    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = lan_requirements();
        requirements.push(Requirement::Program { name: "iperf3", package: "iperf3" });
        if self.settings.broadcast_interval_ms.is_some() {
            requirements.push(Requirement::Program { name: "tcpdump", package: "tcpdump" });
        }
        requirements
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let Settings { workers: processors, broadcast_interval_ms: broadcast_ms, .. } =
            self.settings;
        let mut setup = vec![LocalizedText::new(
            format!(
                "VMs are namespace guests (a TAP device on the switch, which has {processors} \
                 unpinned workers). Each stream is one TCP connection of iperf3 that writes \
                 blocks of the case's size (`--length`); all endpoints share the CPUs of this \
                 machine."
            ),
            format!(
                "VM はネームスペースのゲスト (TAP でスイッチに接続したネームスペース) で、スイッチには CPU に固定しないワーカーが {processors} \
                 個あります。ストリームはそれぞれ iperf3 の TCP 接続 1 本で、ケースのブロックサイズ (`--length`) \
                 ずつカーネルに渡します。すべての端がこのマシンの CPU を共有します。"
            ),
        )];
        if self.passes(NetworkPath::LinuxBridge) {
            setup.push(LocalizedText::new(
                "For comparison: namespaces on the kernel's bridge with veth pairs. The bridge \
                 does not copy frames; the switch copies frames of TAP devices on ingress and \
                 egress.",
                "比較対象は、カーネルのブリッジに veth で接続したネームスペースです。こちらのフレームはコピーされません。TAP \
                 のフレームはスイッチに入るときと出るときにコピーされます。",
            ));
        }
        if self.passes(NetworkPath::Native) {
            setup.push(LocalizedText::new(
                "Native: both ends of a veth pair, without VM and switch.",
                "ネイティブは veth の両端で、VM もスイッチもありません。",
            ));
        }
        if let Some(every_ms) = broadcast_ms {
            setup.push(LocalizedText::new(
                format!(
                    "During the streams through an external switch, the first VM sends a \
                     broadcast every {every_ms} ms, and tcpdump behind the uplink counts the \
                     frames that leave the host."),
                format!("外部スイッチでは、ストリームの間に最初の VM が {every_ms} ミリ秒ごとにブロードキャストし、アップリンクの先で tcpdump \
                         がホストから出たフレームを数えます。"),
            ));
        }
        setup
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
        vec![
            measure(
                "carried",
                "total throughput",
                "転送量の合計",
                "Mbit/s",
                MeasureDirection::Higher,
            )
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
            ),
            measure(
                "switch-byte",
                "CPU time per byte, the daemon",
                "1 バイトあたりの CPU 時間 (デーモン)",
                "ns",
                MeasureDirection::Lower,
            ),
            measure(
                "again",
                "retransmitted segments",
                "再送セグメント",
                "",
                MeasureDirection::Lower,
            ),
            measure(
                "left-unicast",
                "unicast frames that left the host",
                "ホストから出たユニキャスト",
                "",
                MeasureDirection::Lower,
            ),
            measure(
                "left-broadcast",
                "broadcasts that left the host",
                "ホストから出たブロードキャスト",
                "",
                MeasureDirection::None,
            ),
        ]
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let combination = self.settings.combination(&case.id)?;
        let Settings {
            workers: processors,
            warm_up_seconds,
            seconds,
            broadcast_interval_ms: broadcast_ms,
            ..
        } = self.settings;
        let rig = environment.create_rig()?;
        let ends = Testbed::set_up(&rig, combination, processors)?;
        environment.check_not_stopped()?;
        let capture = match (ends.external_device(), broadcast_ms) {
            (Some(outside_end), Some(every_ms))
                if !combination.endpoints.uses_external_network() =>
            {
                let vms = ends.vms();
                let first = vms.first().context("the VMs are missing")?;
                Some(BroadcastCapture::start(&rig, outside_end, first.namespace, every_ms)?)
            }
            _ => None,
        };
        let load = Load::start(
            &rig,
            &pairs(&ends, combination.endpoints)?,
            combination.block_bytes,
            warm_up_seconds,
            seconds,
        )?;
        environment.wait(Duration::from_secs(warm_up_seconds))?;
        let profile = environment.start_profiling();
        let mut sampler = Sampler::begin(ends.daemon())?;
        sampler.sample_for(environment, Duration::from_secs(seconds), SECOND)?;
        drop(profile);
        let (bits, retransmits) = load.end()?;
        let mut part = part(&sampler, bits);
        part.set_value("again", retransmits as f64);
        if let Some(capture) = capture {
            let (unicast, broadcast) = capture.end()?;
            part.set_value("left-unicast", unicast as f64);
            part.set_value("left-broadcast", broadcast as f64);
        }
        Ok(part)
    }
}

/// Returns the pairs of sender and receiver.
fn pairs<'a>(ends: &'a Testbed, endpoints: Endpoints) -> Result<Vec<(Endpoint<'a>, Endpoint<'a>)>> {
    let vms = ends.vms();
    let (first, others) = vms.split_first().context("the VMs are missing")?;
    let pairs = |pair: fn(Endpoint<'a>, Endpoint<'a>) -> (Endpoint<'a>, Endpoint<'a>)| {
        others.iter().map(|other| pair(first.clone(), other.clone())).collect()
    };
    Ok(match endpoints {
        Endpoints::OneToOne | Endpoints::OneToFour => pairs(|first, other| (first, other)),
        Endpoints::FourToOne => pairs(|first, other| (other, first)),
        Endpoints::ToExternal => vec![(first.clone(), ends.external_endpoint()?)],
        Endpoints::FromExternal => vec![(ends.external_endpoint()?, first.clone())],
    })
}

fn part(sampler: &Sampler<'_>, bits_per_second: f64) -> Repetition {
    let mut part = Repetition { series: sampler.series(), ..Repetition::default() };
    let sums = sampler.resource_usage();
    let bytes = (bits_per_second / 8.0 * sums.span_s).max(1.0);
    part.set_value("carried", bits_per_second / 1e6);
    part.set_value("cpu", sums.cpu_percent);
    part.set_value("cpu-byte", sums.cpu_ns / bytes);
    if sums.workers_ns > 0.0 {
        part.set_value("switch-byte", (sums.workers_ns + sums.control_ns) / bytes);
    }
    part
}
