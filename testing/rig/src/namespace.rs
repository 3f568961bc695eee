//! Network namespaces: namespace guests and the outside world.

use std::process;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::{Output, run, run_any};
use crate::leftovers;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::wait_until;

/// Deadline of conditions and commands that take less than a second on an idle machine. Generous
/// because tests share two CPUs with each other and with other load.
const LIMIT: Duration = Duration::from_secs(60);

/// Network namespace; dropping it kills its processes and deletes it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates a namespace with its loopback device up.
    ///
    /// # Errors
    /// The host rejected the namespace.
    pub fn new(rig: &Rig, tag: &str) -> Result<Self> {
        let name = format!("{}{}-{}", leftovers::NAMESPACE_PREFIX, process::id(), rig.unique(tag));
        run(&["ip", "netns", "add", &name])?;
        let namespace = Self { name };
        // New devices must not send frames that the test did not cause.
        namespace.run(&["sysctl", "-qw", "net.ipv6.conf.default.router_solicitations=0"])?;
        namespace.run(&["ip", "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Returns the name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a command in the namespace, which must succeed.
    ///
    /// # Errors
    /// The command failed, with its output.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        run(&self.prefixed(arguments))
    }

    /// Runs a command in the namespace and returns its result.
    ///
    /// # Errors
    /// The command could not be started.
    pub fn run_any(&self, arguments: &[&str], limit: Duration) -> Result<Output> {
        run_any(&self.prefixed(arguments), limit)
    }

    /// Starts a program in the namespace.
    ///
    /// # Errors
    /// The program could not be started.
    pub fn start(&self, rig: &Rig, name: &str, arguments: &[&str]) -> Result<Process> {
        Process::start(rig, name, &self.prefixed(arguments))
    }

    /// Assigns an address like `10.0.0.1/24` to a device and sets it up.
    ///
    /// # Errors
    /// The device does not exist.
    pub fn address(&self, device: &str, address: &str) -> Result<()> {
        self.run(&["ip", "address", "add", address, "dev", device, "nodad"])
            .or_else(|_| self.run(&["ip", "address", "add", address, "dev", device]))?;
        self.run(&["ip", "link", "set", device, "up"])?;
        Ok(())
    }

    /// Waits until a device exists.
    ///
    /// # Errors
    /// The device does not exist within a minute.
    pub fn wait_device(&self, device: &str) -> Result<()> {
        wait_until(&format!("device {device} in {}", self.name), LIMIT, || {
            Ok(self.run_any(&["ip", "link", "show", device], LIMIT)?.is_ok())
        })
    }

    /// Sets offloads with `ethtool -K`, such as `["tso", "off"]`.
    ///
    /// # Errors
    /// The device rejected them.
    pub fn ethtool(&self, device: &str, switches: &[&str]) -> Result<()> {
        let mut arguments = vec!["ethtool", "-K", device];
        arguments.extend(switches);
        self.run(&arguments).map(|_| ())
    }

    /// Returns true once `address` replies to a ping, false if it replies to none in a minute. Use
    /// [`Self::cannot_reach`] for addresses that must not reply.
    pub fn reaches(&self, address: &str) -> bool {
        wait_until(&format!("ping reply from {address}"), LIMIT, || self.ping(address)).is_ok()
    }

    /// Returns true if one ping gets a reply within a second.
    ///
    /// # Errors
    /// The ping could not be sent.
    pub fn ping(&self, address: &str) -> Result<bool> {
        Ok(self.run_any(&["ping", "-n", "-q", "-c", "1", "-W", "1", address], LIMIT)?.is_ok())
    }

    /// Returns true if none of ten pings gets a reply.
    ///
    /// # Errors
    /// The pings could not be sent.
    pub fn cannot_reach(&self, address: &str) -> Result<bool> {
        let arguments = ["ping", "-n", "-c", "10", "-i", "0.05", "-W", "1", address];
        Ok(self.run_any(&arguments, LIMIT)?.stdout.contains(" 0 received"))
    }

    /// Returns a counter of `/proc/net/snmp` or `netstat`, such as `("Tcp", "InCsumErrors")`.
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

    /// Returns the number of received TCP, UDP and ICMP packets with wrong checksums; tests require
    /// zero.
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

    fn prefixed(&self, arguments: &[&str]) -> Vec<String> {
        let mut command: Vec<String> = ["ip", "netns", "exec", &self.name]
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
        command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        leftovers::end_namespace(&self.name);
    }
}

/// Pair of connected devices; deleting one end deletes both.
#[derive(Debug)]
pub struct Veth {
    near: String,
}

impl Veth {
    /// Creates `near` in the current namespace and `far` in `namespace`, both up.
    ///
    /// # Errors
    /// The host rejected the devices.
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

    /// Returns the name of the near end.
    pub fn near(&self) -> &str {
        &self.near
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        let _ = run(&["ip", "link", "delete", &self.near]);
    }
}
