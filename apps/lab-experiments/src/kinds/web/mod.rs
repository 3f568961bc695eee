//! Kind `web`: web VMs with nginx and CGI, loaded from the external network by wrk with two
//! profiles of WebBench.
//!
//! A case is a profile, VMQ enabled or disabled, and a number of web VMs.

mod settings;

use std::time::Duration;

use anyhow::Result;
use suimon_lab_run::{Case, LocalizedText, Measure, MeasureDirection, Repetition};

use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::loads::lan::{Lan, LanSpec};
use crate::loads::lan_requirements;
use crate::loads::vcpus::Vcpus;
use crate::loads::vcpus::available_cpus;
use crate::loads::web::{self, WebClients, WebResult, WebServer};
use crate::measure::measure;
use crate::requirement::Requirement;
use crate::sampling::{SECOND, Sampler};
use settings::Combination;
pub(crate) use settings::Settings;

/// Setup time of a case in seconds: daemon and servers.
const SET_UP_S: f64 = 4.0;

/// Experiment of kind `web`.
pub(crate) struct Web {
    settings: Settings,
}

impl Web {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings })
    }

    fn lan(
        &self,
        environment: &Environment<'_>,
        combination: Combination,
    ) -> Result<(suimon_rig::Rig, Lan)> {
        let rig = environment.create_rig()?;
        let uplink = format!("vmq.enabled = {}", combination.has_vmq);
        let spec = LanSpec {
            guests: combination.vms,
            workers: self.settings.workers,
            uplink: Some(&uplink),
        };
        let lan = Lan::set_up(&rig, spec)?;
        Ok((rig, lan))
    }
}

impl Experiment for Web {
    fn requirements(&self) -> Vec<Requirement> {
        let mut requirements = lan_requirements();
        requirements.extend(web::requirements());
        requirements
    }

    fn setup(&self) -> Vec<LocalizedText> {
        let Settings { workers: processors, file_bytes, .. } = self.settings;
        let connections = self.settings.connections();
        vec![
            LocalizedText::new(
                format!(
                    "Each web VM is a namespace guest on an external switch with {processors} \
                     unpinned workers. Its nginx (one worker process) and its CGI server \
                     (fcgiwrap) are bound to one CPU by affinity; the kernel chooses the CPU of \
                     the guest's network stack. VMs share CPUs in turn if there are more VMs than \
                     CPUs."
                ),
                format!(
                    "Web VM はそれぞれネームスペースのゲスト で、CPU に固定しないワーカー {processors} 個の外部スイッチに接続します。nginx \
                     (ワーカー 1 個) と CGI サーバー (fcgiwrap) は CPU アフィニティで 1 個の CPU \
                     に固定します。ゲストのネットワークスタックはカーネルが選んだ CPU で動きます。VM が CPU より多いときは順に CPU を共有します。"
                ),
            ),
            LocalizedText::new(
                format!(
                    "Outside, behind a veth pair, wrk keeps {} HTTP and {} HTTPS connections (TLS \
                     as negotiated by nginx and wrk, RSA 2048 bits, a new handshake after 20 \
                     requests) per web VM, each with one request in flight. A response has \
                     {file_bytes} bytes. The clients use the same CPUs as the host.",
                    connections.http, connections.https
                ),
                format!(
                    "外部 (veth の先) では wrk が Web VM ごとに HTTP {} 本と HTTPS {} 本の接続 (TLS は nginx と wrk \
                     の合意、RSA 2048 ビット、20 要求ごとに再ハンドシェイク) で、1 要求ずつ送り続けます。応答は {file_bytes} \
                     バイトです。クライアントもホストと同じ CPU を使います。",
                    connections.http, connections.https
                ),
            ),
            LocalizedText::new(
                "STD-CGI: 16 of 100 HTTP requests and 2 of 100 HTTPS requests start a program, a \
                 shell script that prints as many bytes as the file has. MIN-CGI: no HTTP \
                 request, 2 of 100 HTTPS requests.",
                "STD-CGI では HTTP の 16 % と HTTPS の 2 % の要求がプログラム (ファイルと同じ長さを出力するシェル) \
                 を起動します。MIN-CGI では HTTP では起動せず、HTTPS の 2 % だけが起動します。",
            ),
        ]
    }

    fn cases(&self) -> Vec<Case> {
        let combinations = self.settings.combinations().into_iter();
        let seconds = self.settings.seconds as f64 + SET_UP_S;
        combinations
            .map(|combination| Case::new(combination.id(), combination.description(), seconds))
            .collect()
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            measure(
                "requests",
                "completed requests",
                "応答した要求",
                "/s",
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
                "cpu-each",
                "CPU time per request",
                "要求あたりの CPU 時間",
                "µs",
                MeasureDirection::Lower,
            ),
            measure(
                "switch-each",
                "share of the daemon",
                "うちデーモンの CPU 時間",
                "µs",
                MeasureDirection::Lower,
            ),
            measure(
                "p99",
                "99th percentile latency",
                "99 % の応答時間",
                "ms",
                MeasureDirection::Lower,
            ),
            measure("https-share", "HTTPS requests", "HTTPS の割合", "%", MeasureDirection::None),
            measure(
                "cgi-share",
                "requests completed by a program",
                "CGI の割合",
                "%",
                MeasureDirection::None,
            ),
            measure("errors", "errors", "エラー", "", MeasureDirection::Lower),
        ]
    }

    fn run(&mut self, case: &Case, environment: &Environment<'_>) -> Result<Repetition> {
        let combination = self.settings.combination(&case.id)?;
        let (rig, lan) = self.lan(environment, combination)?;
        let mut servers = Vec::new();
        for (index, guest) in lan.guests.iter().enumerate() {
            environment.check_not_stopped()?;
            let file_bytes = self.settings.file_bytes;
            let vcpus = Vcpus::new(index, 1, available_cpus());
            servers.push(WebServer::start(&rig, &guest.namespace, &vcpus, file_bytes)?);
        }
        let seconds = self.settings.seconds;
        let mut clients = Vec::new();
        for guest in &lan.guests {
            let (server_address, connections) = (guest.address(), self.settings.connections());
            let world = lan.external_namespace()?;
            clients.push(WebClients::start(
                &rig,
                world,
                &server_address,
                combination.profile(),
                connections,
                seconds,
            )?);
        }
        let profile = environment.start_profiling();
        let mut sampler = Sampler::begin(Some(&lan.daemon))?;
        sampler.sample_for(environment, Duration::from_secs(seconds), SECOND)?;
        drop(profile);
        let web_result: Vec<WebResult> =
            clients.into_iter().map(WebClients::end).collect::<Result<_>>()?;
        Ok(part(&web_result, &sampler))
    }
}

fn part(web_result: &[WebResult], sampler: &Sampler<'_>) -> Repetition {
    let mut part = Repetition { series: sampler.series(), ..Repetition::default() };
    let sum = |value_of: fn(&WebResult) -> f64| web_result.iter().map(value_of).sum::<f64>();
    let (requests, rate) =
        (sum(|result| result.requests).max(1.0), sum(|result| result.requests_per_s));
    let sums = sampler.resource_usage();
    // Dividing rates instead of counts compensates for clients that start before the first sample.
    let us_per_operation = |ns: f64| ns / 1e3 / sums.span_s / rate;
    part.set_value("requests", rate);
    part.set_value("cpu", sums.cpu_percent);
    part.set_value("cpu-each", us_per_operation(sums.cpu_ns));
    part.set_value("switch-each", us_per_operation(sums.workers_ns + sums.control_ns));
    part.set_value("p99", web_result.iter().map(|result| result.p99_ms).fold(0.0, f64::max));
    part.set_value("https-share", sum(|result| result.https_requests) / requests * 100.0);
    part.set_value("cgi-share", sum(|result| result.cgi_requests) / requests * 100.0);
    part.set_value("errors", sum(|result| result.errors));
    part
}
