//! Loads on the control plane: API calls, event streams, metrics, changes, captures, VMs.

use std::io::Write;
use std::os::unix::net::UnixStream;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::client::Client;
use super::gate::Tally;
use super::site::Site;

/// Requests of one iteration over one connection.
const CALLS: usize = 400;

/// Paths that a console, an operator or Prometheus reads.
const PATHS: [&str; 20] = [
    "/1.0",
    "/1.0/config",
    "/1.0/switches",
    "/1.0/switches/lan/addresses",
    "/1.0/uplinks",
    "/1.0/nics",
    "/1.0/nics/a",
    "/1.0/queues",
    "/1.0/workers",
    "/1.0/vmq",
    "/1.0/stores",
    "/1.0/disks",
    "/1.0/disks/d0",
    "/1.0/qos/flows",
    "/1.0/top",
    "/1.0/vms",
    "/1.0/power",
    "/1.0/sriov",
    "/1.0/events?limit=10",
    "/1.0/disks/unknown",
];

/// Each iteration sends [`CALLS`] read requests over one new connection.
pub(super) fn reads<'a>(
    site: &'a Site,
    totals: &'a Tally,
) -> impl FnMut() -> Result<()> + Send + 'a {
    move || {
        let mut api = Client::connect(&site.socket(), totals)?;
        for round in 0..CALLS {
            let path = PATHS[round % PATHS.len()];
            let (status, body) = api.call("GET", path, "")?;
            let expected = if path.ends_with("unknown") { 404 } else { 200 };
            let text = String::from_utf8_lossy(&body);
            ensure!(status == expected, "GET {path}: {status}: {text}");
        }
        Ok(())
    }
}

/// Each iteration reads the metrics and the longest lists, and runs the CLI.
pub(super) fn scrapes<'a>(
    site: &'a Site,
    totals: &'a Tally,
) -> impl FnMut() -> Result<()> + Send + 'a {
    move || {
        let mut api = Client::connect(&site.socket(), totals)?;
        for _ in 0..10 {
            let (status, body) = api.call("GET", "/metrics", "")?;
            ensure!(status == 200 && body.starts_with(b"#"), "metrics: {status}");
        }
        api.get("/1.0/operations")?;
        api.get("/1.0/events?limit=10000")?;
        site.daemon.ok(&["nic", "list"])?;
        Ok(())
    }
}

/// Each iteration connects clients that follow events or a capture and disconnect, and clients that
/// leave a request incomplete.
pub(super) fn streams<'a>(
    site: &'a Site,
    totals: &'a Tally,
) -> impl FnMut() -> Result<()> + Send + 'a {
    move || {
        for path in [
            "/1.0/events/follow?after=0",
            "/1.0/events/follow?after=0&severity=warning",
            "/1.0/nics/a/capture?snaplen=64",
            "/1.0/uplinks/up/capture?max_frames=10",
        ] {
            let mut follower = Client::connect(&site.socket(), totals)?;
            follower.send("GET", path, "")?;
            let (status, _) = follower.head()?;
            // On a loaded machine, captures whose clients have disconnected may still count towards
            // the maximum.
            let has_no_place = status == 409 && path.contains("/capture");
            ensure!(status == 200 || has_no_place, "GET {path}: {status}");
            follower.read_some()?;
        }
        // This client reads no response.
        Client::connect(&site.socket(), totals)?.send("GET", "/1.0/events/follow?after=0", "")?;
        for cut in ["", "G", "GET /1.0/ni", "POST /1.0/nics HTTP/1.1\r\ncontent-length: 9\r\n\r\n{"]
        {
            UnixStream::connect(site.socket())?.write_all(cut.as_bytes())?;
            totals.count_connections(1);
        }
        let mut malformed = UnixStream::connect(site.socket())?;
        malformed.write_all(b"\0\xff no request\r\n\r\n")?;
        totals.count_connections(1);
        Ok(())
    }
}

/// Each iteration changes, creates and deletes NICs, and requests an invalid change.
pub(super) fn changes<'a>(
    site: &'a Site,
    totals: &'a Tally,
) -> impl FnMut() -> Result<()> + Send + 'a {
    let mut round = 0_u32;
    move || {
        let mut api = Client::connect(&site.socket(), totals)?;
        for _ in 0..20 {
            round += 1;
            let vlan = round % 4094 + 1;
            api.change("PATCH", "/1.0/nics/idle", &format!("{{\"vlan\":{vlan}}}"))?;
        }
        let name = format!("t{round}");
        let body = format!("{{\"name\":\"{name}\",\"switch\":\"lan\",\"backend\":\"tap\"}}");
        api.change("POST", "/1.0/nics", &body)?;
        api.change("DELETE", &format!("/1.0/nics/{name}"), "")?;
        let result = api.change("PATCH", "/1.0/nics/a", "{\"vlan\":70000}");
        ensure!(result.is_err(), "VLAN 70000 is accepted");
        Ok(())
    }
}

/// Changes NICs until the daemon has recorded the maximum number of events that it keeps.
pub(super) fn fill_event_log(site: &Site, totals: &Tally, events_max: u64) -> Result<()> {
    // A change is durable before it completes; concurrent changes share a commit.
    const CLIENTS: u64 = 16;
    std::thread::scope(|scope| {
        let fill = |nth: u64| {
            let mut api = Client::connect(&site.socket(), totals)?;
            let mut vlan = 0;
            while last_event(&mut api)? < events_max {
                vlan = vlan % 4094 + 1;
                let nic = if nth % 2 == 0 { "idle" } else { "vm" };
                api.change("PATCH", &format!("/1.0/nics/{nic}"), &format!("{{\"vlan\":{vlan}}}"))?;
            }
            Ok(())
        };
        let clients: Vec<_> = (0..CLIENTS).map(|nth| scope.spawn(move || fill(nth))).collect();
        clients.into_iter().try_for_each(|client| {
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))?
        })
    })
}

/// Each iteration starts and kills a VM.
pub(super) fn vms<'a>(site: &'a Site, totals: &'a Tally) -> impl FnMut() -> Result<()> + Send + 'a {
    move || {
        let mut api = Client::connect(&site.socket(), totals)?;
        api.change("POST", "/1.0/vms/web/start", "{}")?;
        let status = api.get("/1.0/vms/web")?;
        ensure!(status["state"] == "running", "{status}");
        std::thread::sleep(std::time::Duration::from_millis(500));
        api.change("POST", "/1.0/vms/web/kill", "")
    }
}

/// Returns the sequence number of the last event.
pub(super) fn last_event(api: &mut Client<'_>) -> Result<u64> {
    let events = api.get("/1.0/events?limit=1")?;
    Ok(events[0]["sequence"].as_u64().unwrap_or(0))
}

/// Returns the size in bytes of all events that the daemon keeps, as JSON.
pub(super) fn event_bytes(api: &mut Client<'_>) -> Result<usize> {
    Ok(api.get("/1.0/events?limit=10000")?.to_string().len())
}

/// Returns the sum of the received frames of all NICs.
pub(super) fn frames(api: &mut Client<'_>) -> Result<u64> {
    let nics = api.get("/1.0/nics")?;
    let frames_of = |nic: &Value| nic["counters"]["rx_frames"].as_u64();
    Ok(nics.as_array().into_iter().flatten().filter_map(frames_of).sum())
}
