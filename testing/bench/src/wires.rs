//! Wires from a switch's uplinks into a namespace that counts and drops arriving frames: it has no
//! address.

use std::fs;
use std::process;

use anyhow::{Context, Result};
use suimon_netdev::NetDevices;
use suimon_ports::MemberDevices;
use suimon_rig::{Namespace, Rig, run};

/// Fixed destination address of testpmd's `flowgen`.
pub(crate) const FAR_MAC: &str = "00:01:02:03:04:01";
/// Broadcast frame from that address with an experimental protocol (IEEE 802, 9.2.3), which only
/// switches process to learn the address.
const ANNOUNCEMENT: [u8; 60] = {
    let mut frame = [0; 60];
    let head = [255, 255, 255, 255, 255, 255, 0, 1, 2, 3, 4, 1, 0x88, 0xb5];
    let mut offset = 0;
    while offset < head.len() {
        frame[offset] = head[offset];
        offset += 1;
    }
    frame
};

/// veth pairs, removed with the namespace of their far ends.
pub(crate) struct Wires {
    near: Vec<String>,
    ends: Vec<String>,
    far: Namespace,
}

impl Wires {
    /// Creates `count` wires whose near ends are in `namespace`, or in the current one.
    ///
    /// # Errors
    /// The host rejected the creation.
    pub(crate) fn new(rig: &Rig, count: usize, namespace: Option<&Namespace>) -> Result<Self> {
        let far = Namespace::new(rig, "far")?;
        let mut wires = Self { near: Vec::new(), ends: Vec::new(), far };
        let own_process = process::id().to_string();
        let owner = namespace.map_or(own_process.as_str(), Namespace::name);
        for _ in 0..count {
            let (near, end) = (rig.device("n"), rig.device("f"));
            let add = ["ip", "link", "add", &end, "type", "veth", "peer", "name", &near];
            wires.far.run(&[&add[..], &["netns", owner]].concat())?;
            wires.far.run(&["ip", "link", "set", &end, "up"])?;
            let up = ["ip", "link", "set", &near, "up"];
            namespace.map_or_else(|| run(&up), |namespace| namespace.run(&up))?;
            wires.near.push(near);
            wires.ends.push(end);
        }
        Ok(wires)
    }

    /// Returns the names of the near ends.
    pub(crate) fn near(&self) -> &[String] {
        &self.near
    }

    /// Returns the names of the far ends.
    pub(crate) fn ends(&self) -> &[String] {
        &self.ends
    }

    /// Returns the namespace of the far ends.
    pub(crate) fn far(&self) -> &Namespace {
        &self.far
    }

    /// Returns the number of frames that all far ends have received.
    ///
    /// # Errors
    /// A wire no longer exists.
    pub(crate) fn arrived(&self) -> Result<u64> {
        let table = self.far.inside(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
        self.ends.iter().map(|end| received(&table, end)).sum()
    }

    /// Sends a frame from [`FAR_MAC`] at the far end of a wire.
    ///
    /// # Errors
    /// The wire no longer exists.
    pub(crate) fn announce(&self, nth: usize) -> Result<()> {
        let end = self.ends.get(nth).context("no such wire")?;
        self.far.inside(|| Ok(NetDevices::new()?.open_control(end)?.send(&ANNOUNCEMENT)?))?
    }
}

/// Parses the frames of a line like `  eth0: BYTES FRAMES …`.
fn received(table: &str, device: &str) -> Result<u64> {
    let lines = table.lines().filter_map(|line| line.split_once(':'));
    let mut of_device = lines.filter(|(name, _)| name.trim() == device);
    let counters = of_device.next().map(|(_, counters)| counters);
    let frames = counters.and_then(|counters| counters.split_whitespace().nth(1));
    Ok(frames.with_context(|| format!("no counters of {device}"))?.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_those_that_the_device_received() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n\
                     lo: 1 2 0 0\n  eth0: 640 10 0 0 0 0 0 0 64 1\n";
        assert_eq!(received(table, "eth0").unwrap(), 10);
        assert!(received(table, "eth").is_err());
    }
}
