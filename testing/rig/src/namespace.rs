//! Network namespaces: light guests and the outside world.

use std::process;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::{Output, run, run_any};
use crate::leftovers;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::until;

/// Deadline of conditions and commands that take less than a second on an idle machine. It is
/// long because tests share two CPUs with each other and with other load.
const LIMIT: Duration = Duration::from_secs(60);

/// A network namespace; dropping it ends what runs in it and deletes it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A new one, with its loopback up.
    ///
    /// # Errors
    /// The host refused.
    pub fn new(rig: &Rig, tag: &str) -> Result<Self> {
        let name = format!("{}{}-{}", leftovers::NAMESPACE_PREFIX, process::id(), rig.unique(tag));
        run(&["ip", "netns", "add", &name])?;
        let namespace = Self { name };
        // Nothing but what a test asks for may be on the wire of a new device.
        namespace.run(&["sysctl", "-qw", "net.ipv6.conf.default.router_solicitations=0"])?;
        namespace.run(&["ip", "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// As `ip netns` names it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a command in it, which must end well.
    ///
    /// # Errors
    /// It failed, with its words.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        run(&self.prefixed(words))
    }

    /// Runs a command in it and returns what it said.
    ///
    /// # Errors
    /// It could not be started.
    pub fn run_any(&self, words: &[&str], limit: Duration) -> Result<Output> {
        run_any(&self.prefixed(words), limit)
    }

    /// Starts a program in it.
    ///
    /// # Errors
    /// It could not be started.
    pub fn start(&self, rig: &Rig, name: &str, words: &[&str]) -> Result<Process> {
        Process::start(rig, name, &self.prefixed(words))
    }

    /// Gives a device an address like `10.0.0.1/24` and brings it up.
    ///
    /// # Errors
    /// The device is not there.
    pub fn address(&self, device: &str, address: &str) -> Result<()> {
        self.run(&["ip", "address", "add", address, "dev", device, "nodad"])
            .or_else(|_| self.run(&["ip", "address", "add", address, "dev", device]))?;
        self.run(&["ip", "link", "set", device, "up"])?;
        Ok(())
    }

    /// Waits until a device is there.
    ///
    /// # Errors
    /// It is not there within a minute.
    pub fn wait_device(&self, device: &str) -> Result<()> {
        until(&format!("device {device} in {}", self.name), LIMIT, || {
            Ok(self.run_any(&["ip", "link", "show", device], LIMIT)?.is_ok())
        })
    }

    /// Sets offloads as `ethtool -K` does, such as `["tso", "off"]`.
    ///
    /// # Errors
    /// The device refused.
    pub fn ethtool(&self, device: &str, switches: &[&str]) -> Result<()> {
        let mut words = vec!["ethtool", "-K", device];
        words.extend(switches);
        self.run(&words).map(|_| ())
    }

    /// Returns true as soon as `address` answers a ping, false if it answers none in a minute.
    /// [`Self::is_cut_from`] is for addresses that are not to answer.
    pub fn reaches(&self, address: &str) -> bool {
        until(&format!("answer from {address}"), LIMIT, || self.ping(address)).is_ok()
    }

    /// Whether one ping is answered within a second.
    ///
    /// # Errors
    /// It could not be sent.
    pub fn ping(&self, address: &str) -> Result<bool> {
        Ok(self.run_any(&["ping", "-n", "-q", "-c", "1", "-W", "1", address], LIMIT)?.is_ok())
    }

    /// Whether every one of ten pings stays without answer.
    ///
    /// # Errors
    /// They could not be sent.
    pub fn is_cut_from(&self, address: &str) -> Result<bool> {
        let words = ["ping", "-n", "-c", "10", "-i", "0.05", "-W", "1", address];
        Ok(self.run_any(&words, LIMIT)?.stdout.contains(" 0 received"))
    }

    /// A counter of `/proc/net/snmp` or `netstat`, such as `("Tcp", "InCsumErrors")`.
    ///
    /// # Errors
    /// There is no such counter.
    pub fn snmp(&self, group: &str, counter: &str) -> Result<u64> {
        let text = self.run(&["cat", "/proc/net/snmp", "/proc/net/netstat"])?;
        let mut lines = text.lines().filter(|line| line.starts_with(&format!("{group}: ")));
        let names = lines.next().context("no such group")?;
        let values = lines.next().context("no values")?;
        let (_, value) = names
            .split_whitespace()
            .zip(values.split_whitespace())
            .find(|(name, _)| *name == counter)
            .with_context(|| format!("no counter {counter} in {group}"))?;
        Ok(value.parse()?)
    }

    /// Checksum errors of TCP, UDP and ICMP that arrived here; none are ever
    /// acceptable.
    ///
    /// # Errors
    /// The counters could not be read.
    pub fn checksum_errors(&self) -> Result<u64> {
        let mut sum = 0;
        for group in ["Tcp", "Udp", "Icmp"] {
            sum += self.snmp(group, "InCsumErrors")?;
        }
        Ok(sum)
    }

    fn prefixed(&self, words: &[&str]) -> Vec<String> {
        let mut all: Vec<String> =
            ["ip", "netns", "exec", &self.name].iter().map(|word| (*word).to_owned()).collect();
        all.extend(words.iter().map(|word| (*word).to_owned()));
        all
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        leftovers::end_namespace(&self.name);
    }
}

/// A pair of devices joined by a wire; deleting one end deletes both.
#[derive(Debug)]
pub struct Veth {
    near: String,
}

impl Veth {
    /// `near` here, `far` in `namespace`, both up.
    ///
    /// # Errors
    /// The host refused.
    pub fn new(near: &str, far: &str, namespace: &Namespace) -> Result<Self> {
        run(&[
            "ip",
            "link",
            "add",
            near,
            "type",
            "veth",
            "peer",
            "name",
            far,
            "netns",
            namespace.name(),
        ])?;
        let veth = Self { near: near.to_owned() };
        run(&["ip", "link", "set", near, "up"])?;
        namespace.run(&["ip", "link", "set", far, "up"])?;
        Ok(veth)
    }

    /// The end here.
    pub fn near(&self) -> &str {
        &self.near
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        let _ = run(&["ip", "link", "delete", &self.near]);
    }
}
