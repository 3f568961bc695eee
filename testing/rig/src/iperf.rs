//! iperf3 between light guests.

use std::time::Duration;

use anyhow::{Context, Result, bail};
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

/// Reads what `iperf3 --json` printed.
///
/// # Errors
/// It reports an error, or is no report.
pub fn report(text: &str) -> Result<Report> {
    let json: Value = serde_json::from_str(text)
        .with_context(|| format!("iperf3 printed no JSON: {}", text.trim()))?;
    if let Some(error) = json["error"].as_str() {
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
