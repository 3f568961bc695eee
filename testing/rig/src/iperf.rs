//! iperf3 between light guests.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::namespace::Namespace;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{until, until_some};

/// How long a server may take to be ready for the next run.
const SERVER_LIMIT: Duration = Duration::from_secs(3);

/// What one run carried.
#[derive(Clone, Debug)]
pub struct Report {
    /// Bits per second that arrived.
    pub bits_per_second: f64,
    /// Segments sent again.
    pub retransmits: u64,
    /// All iperf3 said.
    pub json: Value,
}

impl Report {
    /// The fewest bytes that one of the streams carried in the last whole intervals, of which
    /// there are as many as `time` holds.
    ///
    /// # Errors
    /// There are no intervals, or not all streams in each.
    pub fn least_at_end(&self, time: Duration) -> Result<u64> {
        let intervals = self.json["intervals"].as_array().context("no intervals")?;
        let mut left = time.as_secs_f64();
        let mut sums: Vec<u64> = Vec::new();
        for interval in intervals.iter().rev() {
            let streams = interval["streams"].as_array().context("no streams")?;
            sums.resize(sums.len().max(streams.len()), 0);
            ensure!(sums.len() == streams.len(), "a stream is missing");
            for (sum, stream) in sums.iter_mut().zip(streams) {
                *sum += stream["bytes"].as_u64().context("a stream without bytes")?;
            }
            left -= interval["sum"]["seconds"].as_f64().context("an interval without length")?;
            if left <= 0.0 {
                break;
            }
        }
        sums.into_iter().min().context("no streams")
    }

    /// The longest time, in whole intervals, in which one of the streams carried nothing.
    /// What the client receives (`--reverse`) is told as it arrived; what it sends, as it
    /// was handed to the kernel.
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
                let told = &interval["streams"][stream];
                let bytes = told["bytes"].as_u64().context("a stream is missing")?;
                let seconds = told["seconds"].as_f64().context("an interval without length")?;
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
/// It does not listen.
pub fn serve(rig: &Rig, namespace: &Namespace) -> Result<Process> {
    let mut server =
        namespace.start(rig, "iperf3-server", &["iperf3", "--server", "--forceflush"])?;
    until("listening iperf3", Duration::from_secs(10), || {
        server.check_running()?;
        Ok(namespace.run(&["ss", "-ltn"])?.contains(":5201"))
    })?;
    Ok(server)
}

/// Runs a client for `seconds`; `extra` are options of iperf3 such as `-R`.
///
/// # Errors
/// It could not connect, or said so in its report.
pub fn measure(from: &Namespace, to: &str, seconds: u32, extra: &[&str]) -> Result<Report> {
    let seconds_text = seconds.to_string();
    let mut words = vec![
        "iperf3",
        "--client",
        to,
        "--time",
        &seconds_text,
        "--json",
        "--connect-timeout",
        "3000",
    ];
    words.extend(extra);
    let limit = Duration::from_secs(u64::from(seconds) + 15);
    let what = format!("iperf3 to {to}");
    // Between two runs a server is not ready for a moment, and says so.
    let text = until_some(&what, SERVER_LIMIT, || {
        let output = from.run_any(&words, limit)?;
        let not_ready = ["Connection refused", "server is busy"];
        if not_ready.iter().any(|words| output.stdout.contains(words)) {
            bail!("{}", output.stdout.trim());
        }
        Ok(Some(output.stdout))
    })?;
    report(&text).context(what)
}

/// Waits until a client has opened so many connections: one for each stream and way, and
/// one to agree on them. What happens to links before that happens to the opening.
///
/// # Errors
/// They are not open after 10 s.
pub fn wait_open(client: &Namespace, connections: usize) -> Result<()> {
    let words = ["ss", "-Htn", "state", "established", "dport = :5201"];
    until("iperf3's connections", Duration::from_secs(10), || {
        Ok(client.run(&words)?.lines().count() >= connections)
    })
}

/// Reads what `iperf3 --json` printed.
///
/// # Errors
/// It reports an error, or is no report.
pub fn report(text: &str) -> Result<Report> {
    read(text, None)
}

/// The same of a client that was ended before its time by a signal.
///
/// # Errors
/// It ended for another reason, or it is no report.
pub fn report_until_ended(text: &str) -> Result<Report> {
    read(text, Some("interrupt - the client has terminated"))
}

fn read(text: &str, expected: Option<&str>) -> Result<Report> {
    let json: Value = serde_json::from_str(text)
        .with_context(|| format!("iperf3 printed no JSON: {}", text.trim()))?;
    if let Some(error) = json["error"].as_str().filter(|error| Some(*error) != expected) {
        bail!("iperf3 says: {error}");
    }
    let end = &json["end"];
    let received = end["sum_received"]["bits_per_second"].as_f64();
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
        let none = report_of(&[[1, 1], [5, 1]]);
        assert_eq!(none.longest_pause().unwrap(), Duration::ZERO);
        // Three in a row of one stream; two and two of the other, also at the end.
        let some = report_of(&[[0, 0], [0, 0], [0, 9], [1, 0], [1, 0]]);
        assert_eq!(some.longest_pause().unwrap(), Duration::from_millis(750));
        assert!(report_of(&[]).longest_pause().is_err());
    }

    #[test]
    fn what_is_carried_at_the_end_is_the_least_of_any_stream() {
        let report = report_of(&[[9, 9], [0, 7], [1, 0], [2, 0]]);
        let least = |ms| report.least_at_end(Duration::from_millis(ms)).unwrap();
        assert_eq!((least(500), least(750), least(1000), least(9000)), (0, 3, 12, 12));
        assert!(report_of(&[]).least_at_end(Duration::from_secs(1)).is_err());
    }
}
