//! Namespaces connected by Suimon's TAP ports, by veth pairs on the kernel's bridge, or by TAP
//! ports of an Open vSwitch that does not poll, with the same addresses and device names.

use std::time::Duration;

use anyhow::{Result, ensure};
use suimon_rig::ovs::OvsWoken;
use suimon_rig::{Daemon, Namespace, NamespaceGuest, Rig, private_lan, run, wait_until};

/// IPv4 network of all namespaces.
const NETWORK: &str = "10.77.0.0/24";
const KERNEL_PATH_LIMIT: Duration = Duration::from_secs(10);
const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// Switch that connects the namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    Suimon,
    /// Suimon with forwarding offloaded to the kernel.
    KernelPath,
    Bridge,
    OpenVSwitch,
}

impl Through {
    /// Returns the name in tables.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Suimon => "Suimon",
            Self::KernelPath => "Suimon, `kernel_path`",
            Self::Bridge => "Linux bridge and veth",
            Self::OpenVSwitch => "Open vSwitch, TAPs, interrupt mode",
        }
    }
}

/// Components that connect the namespaces.
enum Between {
    Suimon { daemon: Daemon },
    Bridge { _namespace: Namespace },
    OpenVSwitch { _switch: OvsWoken },
}

/// Connected namespaces. The fields are dropped in this order.
pub(crate) struct Lan {
    between: Between,
    guests: Vec<Namespace>,
    pub(crate) rig: Rig,
}

impl Lan {
    /// Creates `guests` namespaces, at most four.
    pub(crate) fn new(network: Through, guests: usize) -> Result<Self> {
        let rig = Rig::new()?;
        let names = &NAMES[..guests];
        let (connection, guests) = match network {
            Through::Suimon | Through::KernelPath => {
                let keys = if network == Through::KernelPath { "kernel_path = true" } else { "" };
                let nics: Vec<_> = names.iter().map(|name| (*name, keys)).collect();
                let (daemon, guests) = private_lan(&rig, &nics)?;
                let guests = guests.into_iter().map(|guest| guest.namespace).collect();
                (Between::Suimon { daemon }, guests)
            }
            Through::Bridge => {
                // In a separate namespace, so that the machine's firewall and other settings have
                // no effect.
                let bridge = Namespace::new(&rig, "bridge")?;
                bridge.run(&["ip", "link", "add", "br0", "type", "bridge"])?;
                bridge.run(&["ip", "link", "set", "br0", "up"])?;
                let guests = connected(&rig, names, |guest, name| bridged(&bridge, guest, name))?;
                (Between::Bridge { _namespace: bridge }, guests)
            }
            Through::OpenVSwitch => {
                let mut switch = OvsWoken::start(&rig)?;
                let guests = connected(&rig, names, |guest, name| switch.connect(guest, name))?;
                (Between::OpenVSwitch { _switch: switch }, guests)
            }
        };
        let lan = Self { between: connection, guests, rig };
        for guest in &lan.guests[1..] {
            ensure!(guest.reaches(&address(0)), "the namespaces do not reach each other");
        }
        if network == Through::KernelPath {
            lan.wait_kernel_path(names)?;
        }
        Ok(lan)
    }

    /// Waits until the kernel forwards what these NICs send.
    fn wait_kernel_path(&self, nics: &[&str]) -> Result<()> {
        let Between::Suimon { daemon } = &self.between else { return Ok(()) };
        wait_until("forwarding by the kernel", KERNEL_PATH_LIMIT, || {
            for guest in &self.guests[1..] {
                guest.ping(&address(0))?;
            }
            let mut is_taken = true;
            for nic in nics {
                let status = daemon.json(&["nic", "show", nic])?;
                is_taken &= status["kernel_path"]["rx_frames"].as_u64().unwrap_or(0) > 0;
            }
            Ok(is_taken)
        })
    }

    /// Returns the namespace with this number, from 0.
    pub(crate) fn guest(&self, nth: usize) -> &Namespace {
        &self.guests[nth]
    }

    /// Sets the congestion control with which connections of all namespaces begin. iperf3's own
    /// option changes it after the connection is established: a socket that began with bbr is then
    /// paced by a timer regardless of the change.
    pub(crate) fn use_congestion_control(&self, control: &str) -> Result<()> {
        let device = NamespaceGuest::DEVICE;
        for guest in &self.guests {
            guest.run(&["ip", "route", "change", NETWORK, "dev", device, "congctl", control])?;
        }
        Ok(())
    }
}

/// Returns the address of the namespace with this number.
pub(crate) fn address(nth: usize) -> String {
    format!("10.77.0.{}", nth + 1)
}

/// Creates namespaces, connects each and assigns its address.
fn connected(
    rig: &Rig,
    names: &[&str],
    mut connect: impl FnMut(&Namespace, &str) -> Result<()>,
) -> Result<Vec<Namespace>> {
    let guests = (0..).zip(names).map(|(nth, name)| {
        let guest = Namespace::new(rig, name)?;
        connect(&guest, name)?;
        guest.address(NamespaceGuest::DEVICE, &format!("{}/24", address(nth)))?;
        Ok(guest)
    });
    guests.collect()
}

fn bridged(bridge: &Namespace, guest: &Namespace, name: &str) -> Result<()> {
    let device = NamespaceGuest::DEVICE;
    let add = ["ip", "-netns", bridge.name(), "link", "add", name, "type", "veth"];
    run(&[&add[..], &["peer", "name", device, "netns", guest.name()]].concat())?;
    bridge.run(&["ip", "link", "set", name, "master", "br0", "up"])?;
    Ok(())
}
