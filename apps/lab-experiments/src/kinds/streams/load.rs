//! Load: TCP streams of iperf3 between endpoints, and capture of frames that leave the host.

use std::time::Duration;

use anyhow::{Context, Result};
use suimon_rig::{Namespace, Process, Rig, iperf, wait_until};

use super::testbed::Endpoint;

const PORT_FIRST: usize = 5300;
const START_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for a client to exit after its nominal end.
const END_LIMIT: Duration = Duration::from_secs(15);
/// Largest number of captured frames.
const FRAMES_MOST: &str = "100000";

/// TCP streams in progress, each with its own iperf3 server. Dropping the value ends them.
pub(crate) struct Load {
    clients: Vec<Process>,
    _servers: Vec<Process>,
}

impl Load {
    /// Starts a stream for each pair of sender and receiver.
    ///
    /// # Errors
    /// A server of iperf3 does not start listening.
    pub(crate) fn start(
        rig: &Rig,
        pairs: &[(Endpoint<'_>, Endpoint<'_>)],
        block: u32,
        warm_up_seconds: u64,
        seconds: u64,
    ) -> Result<Self> {
        let mut servers = Vec::new();
        for (nth, (_, to)) in pairs.iter().enumerate() {
            let port = (PORT_FIRST + nth).to_string();
            let command = ["iperf3", "--server", "--port", &port];
            servers.push(to.namespace.start(rig, "iperf3-server", &command)?);
        }
        wait_until("listening iperf3", START_LIMIT, || {
            for server in &mut servers {
                server.check_running()?;
            }
            let mut listen = pairs.iter().enumerate().map(|(nth, (_, to))| {
                let sockets = to.namespace.run(&["ss", "-Hltn"])?;
                Ok(sockets.contains(&format!(":{} ", PORT_FIRST + nth)))
            });
            listen.try_fold(true, |all_ready, ready: Result<bool>| Ok(all_ready && ready?))
        })?;
        let (block, time) = (block.to_string(), seconds.to_string());
        let omit = warm_up_seconds.to_string();
        let mut clients = Vec::new();
        for (nth, (from, to)) in pairs.iter().enumerate() {
            let port = (PORT_FIRST + nth).to_string();
            let command = ["iperf3", "--client", &to.address, "--port", &port, "--json"];
            let options = ["--length", &block, "--time", &time, "--omit", &omit];
            let limit = ["--connect-timeout", "5000"];
            let command = [&command[..], &options, &limit].concat();
            clients.push(from.namespace.start(rig, "iperf3-client", &command)?);
        }
        Ok(Self { clients, _servers: servers })
    }

    /// Waits for the end of all streams. Returns the sum of their rates in bit/s, and the number of
    /// retransmitted segments.
    ///
    /// # Errors
    /// A client does not exit or reports an error.
    pub(crate) fn end(mut self) -> Result<(f64, u64)> {
        let (mut bits, mut retransmits) = (0.0, 0);
        for client in &mut self.clients {
            client.wait(END_LIMIT)?;
            let report = iperf::report(&client.log()).context("a client of iperf3 failed")?;
            bits += report.bits_per_second;
            retransmits += report.retransmits;
        }
        Ok((bits, retransmits))
    }
}

/// Capture of frames at an external device while a VM sends broadcasts.
pub(crate) struct BroadcastCapture {
    unicast: Process,
    broadcast: Process,
    _pings: Process,
}

impl BroadcastCapture {
    /// Starts the capture at a device, and broadcasts of a VM at the given interval in ms.
    ///
    /// # Errors
    /// tcpdump does not start.
    pub(crate) fn start(
        rig: &Rig,
        (outside_end, device): (&Namespace, &str),
        source: &Namespace,
        every_ms: u64,
    ) -> Result<Self> {
        let begin = |filter: &[&str]| {
            let command = ["tcpdump", "-n", "-p", "-Q", "in", "-Z", "root", "-c", FRAMES_MOST];
            let command = [&command[..], &["-w", "/dev/null", "-i", device], filter].concat();
            outside_end.start(rig, "tcpdump", &command)
        };
        // Frames to the external device itself are excluded, such as unicast ARP probes of guests,
        // which leave the host legitimately.
        let station = outside_end.run(&["cat", &format!("/sys/class/net/{device}/address")])?;
        let of_others = ["not", "multicast", "and", "not", "ether", "dst", station.trim()];
        let mut captures = [begin(&of_others)?, begin(&["ether", "broadcast"])?];
        wait_until("listening tcpdump", START_LIMIT, || {
            for capture in &mut captures {
                capture.check_running()?;
            }
            Ok(captures.iter().all(|capture| capture.log().contains("listening on")))
        })?;
        let interval = format!("{}.{:03}", every_ms / 1000, every_ms % 1000);
        let pings = ["ping", "-n", "-q", "-b", "-i", &interval, "10.77.0.255"];
        let pings = source.start(rig, "ping", &pings)?;
        let [unicast, broadcast] = captures;
        Ok(Self { unicast, broadcast, _pings: pings })
    }

    /// Ends the capture. Returns the number of unicast frames to other stations than the external
    /// device, and the number of broadcasts.
    ///
    /// # Errors
    /// tcpdump does not report its counts.
    pub(crate) fn end(mut self) -> Result<(u64, u64)> {
        let captures = [&mut self.unicast, &mut self.broadcast];
        let [unicast, broadcast] = captures.map(|capture| {
            capture.stop()?;
            captured(&capture.log())
        });
        Ok((unicast?, broadcast?))
    }
}

/// Parses the count in tcpdump's summary.
fn captured(log: &str) -> Result<u64> {
    let line = log.lines().find(|line| line.contains("captured"));
    let count = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    count.with_context(|| {
        format!("tcpdump did not report the number of captured frames: {}", log.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_from_the_summary_of_tcpdump() {
        let log = "tcpdump: listening on f1, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n\
                   21 packets captured\n23 packets received by filter\n0 packets dropped by kernel\n";
        assert_eq!(captured(log).unwrap(), 21);
        let error_log = "tcpdump: f1: No such device exists\n";
        assert!(format!("{:#}", captured(error_log).unwrap_err()).contains("No such device"));
    }
}
