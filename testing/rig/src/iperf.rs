//! iperf3 between namespace guests.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::Value;

use crate::namespace::Namespace;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{wait_for_value, wait_until};

/// Options of a background stream that leaves CPU time to the test.
pub const BESIDE: [&str; 2] = ["--bitrate", "100M"];

/// Deadline for a server to listen, for it to be ready for the next run, and for connections to be
/// established. Generous because tests share two CPUs with each other and with other load.
const LIMIT: Duration = Duration::from_secs(60);

/// Result of one run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Bits per second received.
    pub bits_per_second: f64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Complete report of iperf3.
    pub json: Value,
}

impl Report {
    /// Returns the smallest number of bytes that a stream carried in the last complete intervals,
    /// within `time`.
    ///
    /// # Errors
    /// There are no intervals, or not all streams in each.
    pub fn least_at_end(&self, time: Duration) -> Result<u64> {
        let intervals = self.json["intervals"].as_array().context("no intervals")?;
        let mut remaining_s = time.as_secs_f64();
        let mut sums: Vec<u64> = Vec::new();
        for interval in intervals.iter().rev() {
            let streams = interval["streams"].as_array().context("no streams")?;
            sums.resize(sums.len().max(streams.len()), 0);
            ensure!(sums.len() == streams.len(), "a stream is missing");
            for (sum, stream) in sums.iter_mut().zip(streams) {
                *sum += stream["bytes"].as_u64().context("a stream without bytes")?;
            }
            remaining_s -=
                interval["sum"]["seconds"].as_f64().context("an interval without length")?;
            if remaining_s <= 0.0 {
                break;
            }
        }
        sums.into_iter().min().context("no streams")
    }

    /// Returns the longest time, in complete intervals, in which a stream carried nothing. Data
    /// that the client receives (`--reverse`) counts when it arrives; data that it sends counts
    /// when it is passed to the kernel.
    ///
    /// # Errors
    /// There are no intervals, or not all streams in each.
    pub fn longest_pause(&self) -> Result<Duration> {
        let intervals = self.json["intervals"].as_array().context("no intervals")?;
        let count = |interval: &Value| interval["streams"].as_array().map_or(0, Vec::len);
        let streams = intervals.first().map_or(0, count);
        ensure!(streams > 0, "no streams");
        let mut longest: f64 = 0.0;
        for stream in 0..streams {
            let mut pause = 0.0;
            for interval in intervals {
                let stream_data = &interval["streams"][stream];
                let bytes = stream_data["bytes"].as_u64().context("a stream is missing")?;
                let seconds =
                    stream_data["seconds"].as_f64().context("an interval without length")?;
                pause = if bytes == 0 { pause + seconds } else { 0.0 };
                longest = longest.max(pause);
            }
        }
        Ok(Duration::from_secs_f64(longest))
    }
}

/// Starts a server in a namespace and waits until it listens.
///
/// # Errors
/// The server does not listen in time.
pub fn serve(rig: &Rig, namespace: &Namespace) -> Result<Process> {
    let mut server =
        namespace.start(rig, "iperf3-server", &["iperf3", "--server", "--forceflush"])?;
    wait_until("listening iperf3", LIMIT, || {
        server.check_running()?;
        Ok(namespace.run(&["ss", "-ltn"])?.contains(":5201"))
    })?;
    Ok(server)
}

/// Runs a client for `seconds`; `extra` contains options of iperf3 such as `-R`.
///
/// # Errors
/// The client could not connect, or reported an error.
pub fn measure(from: &Namespace, to: &str, seconds: u32, extra: &[&str]) -> Result<Report> {
    let seconds_text = seconds.to_string();
    let mut arguments = vec![
        "iperf3",
        "--client",
        to,
        "--time",
        &seconds_text,
        "--json",
        "--connect-timeout",
        "30000",
    ];
    arguments.extend(extra);
    let limit = Duration::from_secs(seconds.into()) + 2 * LIMIT;
    let description = format!("iperf3 to {to}");
    // Between two runs a server is not ready for a moment, and reports that.
    let text = wait_for_value(&description, LIMIT, || {
        let output = from.run_any(&arguments, limit)?;
        let not_ready = ["Connection refused", "server is busy"];
        if not_ready.iter().any(|message| output.stdout.contains(message)) {
            bail!("{}", output.stdout.trim());
        }
        Ok(Some(output.stdout))
    })?;
    report(&text).context(description)
}

/// Waits until a client has opened `connections` connections: one per stream and direction, and a
/// control connection. Changes of links before that would affect the connection setup.
///
/// # Errors
/// The connections are not open after a minute.
pub fn wait_open(client: &Namespace, connections: usize) -> Result<()> {
    let arguments = ["ss", "-Htn", "state", "established", "dport = :5201"];
    wait_until("iperf3's connections", LIMIT, || {
        Ok(client.run(&arguments)?.lines().count() >= connections)
    })
}

/// Client that runs until it is ended, because the duration of concurrent steps is unknown.
#[derive(Debug)]
pub struct Client<'n> {
    process: Process,
    namespace: &'n Namespace,
    /// Address and port of the server, in the format of `ss`.
    server: String,
    streams: usize,
}

impl<'n> Client<'n> {
    /// Starts a client with `streams` streams, in each direction if `extra` has `--bidir`, and
    /// waits until every stream carries bytes.
    ///
    /// # Errors
    /// A stream carries no bytes within a minute.
    pub fn begin(
        rig: &Rig,
        namespace: &'n Namespace,
        target: &str,
        streams: usize,
        extra: &[&str],
    ) -> Result<Self> {
        let parallel = streams.to_string();
        let arguments =
            ["iperf3", "--client", target, "--time", "0", "--json", "--parallel", &parallel];
        let arguments = [&arguments[..], &["--connect-timeout", "30000"], extra].concat();
        let streams = if extra.contains(&"--bidir") { 2 * streams } else { streams };
        let server = if target.contains(':') {
            format!(" [{target}]:5201")
        } else {
            format!(" {target}:5201")
        };
        let process = namespace.start(rig, "iperf3-client", &arguments)?;
        let mut client = Self { process, namespace, server, streams };
        wait_until("open connections of iperf3", LIMIT, || {
            if !client.process.is_running() {
                // Between two runs a server is not ready for a moment: it rejects the connection,
                // reports that it is busy, or resets the connection.
                let log = client.process.log();
                client.process = namespace.start(rig, "iperf3-client", &arguments)?;
                bail!("{}", log.trim());
            }
            Ok(client.carried()?.len() > streams)
        })?;
        client.wait_flow("streams at their beginning")?;
        Ok(client)
    }

    fn carried(&self) -> Result<BTreeMap<String, u64>> {
        let mut flows = carried(self.namespace)?;
        flows.retain(|ends, _| ends.ends_with(&self.server));
        Ok(flows)
    }

    /// Fails if the client has ended, for example because a connection failed.
    ///
    /// # Errors
    /// The client has ended, with its last output.
    pub fn check_running(&mut self) -> Result<()> {
        self.process.check_running()
    }

    /// Waits until every stream has carried more bytes than now.
    ///
    /// # Errors
    /// A stream has carried no further bytes within two minutes, with the bytes of each connection
    /// before and after; or the client has ended.
    pub fn wait_flow(&mut self, description: &str) -> Result<()> {
        let before = self.carried()?;
        let mut after = before.clone();
        let flows = wait_until(description, 2 * LIMIT, || {
            self.process.check_running()?;
            after = self.carried()?;
            let grown = |flow: &(&String, &u64)| {
                before.get(flow.0).is_some_and(|previous| flow.1 > previous)
            };
            // iperf3's control connection carries nothing meanwhile.
            Ok(after.iter().filter(grown).count() >= self.streams)
        });
        flows.with_context(|| format!("bytes before: {before:?}, after: {after:?}"))
    }

    /// Ends the client and returns its report. `--interval` sets the length of a stream's
    /// intervals.
    ///
    /// # Errors
    /// The client ended before, for another reason.
    pub fn end(mut self) -> Result<Report> {
        self.process.check_running()?;
        self.process.signal(Signal::INT);
        self.process.wait(LIMIT)?;
        report_until_ended(&self.process.log())
    }
}

/// Returns the bytes that each established connection between iperf3 programs has carried in both
/// directions, as counted by the kernel of this namespace. Each client has one control connection.
///
/// # Errors
/// The kernel's list cannot be read.
pub fn carried(namespace: &Namespace) -> Result<BTreeMap<String, u64>> {
    let arguments = ["ss", "-HtinO", "state", "established", "( dport = :5201 or sport = :5201 )"];
    let list = namespace.run(&arguments)?;
    let connection = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ends = [fields.get(2)?, fields.get(3)?].map(|end| (*end).to_owned()).join(" ");
        let count = |field: &&str| {
            let names = ["bytes_acked:", "bytes_received:"];
            names.iter().find_map(|name| field.strip_prefix(name))?.parse::<u64>().ok()
        };
        Some((ends, fields.iter().filter_map(count).sum()))
    };
    Ok(list.lines().filter_map(connection).collect())
}

/// Parses the output of `iperf3 --json`.
///
/// # Errors
/// The output contains an error, or is not a report.
pub fn report(text: &str) -> Result<Report> {
    read(text, None)
}

/// Parses the output of a client that was ended by a signal.
///
/// # Errors
/// The client ended for another reason, or the output is not a report.
pub fn report_until_ended(text: &str) -> Result<Report> {
    read(text, Some("interrupt - the client has terminated"))
}

fn read(text: &str, expected: Option<&str>) -> Result<Report> {
    let json: Value = serde_json::from_str(text)
        .with_context(|| format!("iperf3 printed no JSON: {}", text.trim()))?;
    if let Some(error) = json["error"].as_str().filter(|error| Some(*error) != expected) {
        bail!("iperf3 reported: {error}");
    }
    let end = &json["end"];
    let received = end["sum_received"]["bits_per_second"].as_f64();
    // A client that was ended has no report of the bytes that the server received.
    let sent_rate = end["sum_sent"]["bits_per_second"].as_f64();
    let received = if expected.is_some() && received == Some(0.0) { sent_rate } else { received };
    // A UDP report of this version has one sum for both ends.
    let bits_per_second =
        received.or_else(|| end["sum"]["bits_per_second"].as_f64()).context("no sum")?;
    let retransmits = end["sum_sent"]["retransmits"].as_u64().unwrap_or(0);
    Ok(Report { bits_per_second, retransmits, json })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report_of(intervals: &[[u64; 2]]) -> Report {
        let stream = |bytes: &u64| json!({ "bytes": bytes, "seconds": 0.25 });
        let interval = |bytes: &[u64; 2]| json!({ "streams": bytes.map(|of| stream(&of)), "sum": { "seconds": 0.25 } });
        let intervals: Vec<Value> = intervals.iter().map(interval).collect();
        Report { bits_per_second: 0.0, retransmits: 0, json: json!({ "intervals": intervals }) }
    }

    #[test]
    fn a_pause_is_of_one_stream_and_as_long_as_its_empty_intervals_in_a_row() {
        let without_pause = report_of(&[[1, 1], [5, 1]]);
        assert_eq!(without_pause.longest_pause().unwrap(), Duration::ZERO);
        // One stream has a pause of three intervals; the other one two pauses of two, one of them
        // at the end.
        let with_pause = report_of(&[[0, 0], [0, 0], [0, 9], [1, 0], [1, 0]]);
        assert_eq!(with_pause.longest_pause().unwrap(), Duration::from_millis(750));
        assert!(report_of(&[]).longest_pause().is_err());
    }

    #[test]
    fn the_throughput_at_the_end_is_the_lowest_of_any_stream() {
        let report = report_of(&[[9, 9], [0, 7], [1, 0], [2, 0]]);
        let lowest = |ms| report.least_at_end(Duration::from_millis(ms)).unwrap();
        assert_eq!((lowest(500), lowest(750), lowest(1000), lowest(9000)), (0, 3, 12, 12));
        assert!(report_of(&[]).least_at_end(Duration::from_secs(1)).is_err());
    }
}
