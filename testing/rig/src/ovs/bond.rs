//! Bonds with LACP, whose links end in a namespace with the partner.

use anyhow::{Context, Result};

use super::server::Server;
use crate::namespace::Namespace;
use crate::process::Process;
use crate::rig::Rig;

/// LACP mode of a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacp {
    /// The bond starts the exchange.
    Active,
    /// The bond waits for its partner.
    Passive,
}

/// Switch with any number of bonds of two links, each on a separate bridge.
#[derive(Debug)]
pub struct OvsBonds {
    server: Server,
    bonds: u8,
    /// The switch's ends of each bond's links.
    links: Vec<Vec<String>>,
}

impl OvsBonds {
    /// Starts the switch without a bond.
    ///
    /// # Errors
    /// The switch does not start, with the end of its log.
    pub fn start(rig: &Rig) -> Result<Self> {
        Ok(Self { server: Server::start(rig, &[])?, bonds: 0, links: Vec::new() })
    }

    /// Returns the namespace of the switch and its ends of the links.
    pub fn namespace(&self) -> &Namespace {
        &self.server.namespace
    }

    /// Returns the process of the switch.
    pub fn process(&self) -> &Process {
        &self.server.switch
    }

    /// Adds a bond (balance-tcp, short timeout) whose links end in `far`. Returns their ends there,
    /// and an address behind the bond. The bond rebalances its links every second instead of every
    /// ten, so that all flows are on one of them for at most a second.
    ///
    /// # Errors
    /// The host or the switch rejected it.
    pub fn add(&mut self, rig: &Rig, far: &Namespace, lacp: Lacp) -> Result<([String; 2], String)> {
        let links = [rig.device("m"), rig.device("m")];
        let ends = [rig.device("f"), rig.device("f")];
        for (link, end) in links.iter().zip(&ends) {
            let peer = ["type", "veth", "peer", "name", link, "netns", self.namespace().name()];
            far.run(&[&["ip", "link", "add", end][..], &peer].concat())?;
            far.run(&["ip", "link", "set", end, "up"])?;
            self.namespace().run(&["ip", "link", "set", link, "up"])?;
        }
        let bond = bond_name(usize::from(self.bonds));
        let bridge = self.join(&links, lacp)?;
        self.server.set(&["set", "port", &bond, "other_config:bond-rebalance-interval=1000"])?;
        let address = format!("10.99.{}.1", self.bonds);
        self.namespace().address(&bridge, &format!("{address}/24"))?;
        Ok((ends, address))
    }

    /// Bonds devices of its namespace (balance-tcp, short timeout) on another bridge. Returns the
    /// device that has the bridge's addresses.
    ///
    /// # Errors
    /// The switch rejected the bond.
    pub fn join(&mut self, links: &[String], lacp: Lacp) -> Result<String> {
        let Self { server, bonds, links: all_links } = self;
        let index = usize::from(*bonds);
        let (bridge, bond) = (bridge_name(index), bond_name(index));
        *bonds += 1;
        let mut arguments =
            vec!["add-br", &bridge, "--", "set", "bridge", &bridge, "datapath_type=netdev"];
        arguments.extend(["--", "add-bond", &bridge, &bond]);
        arguments.extend(links.iter().map(String::as_str));
        arguments.push(if lacp == Lacp::Active { "lacp=active" } else { "lacp=passive" });
        arguments.extend(["bond_mode=balance-tcp", "other_config:lacp-time=fast"]);
        server.set(&arguments)?;
        server.switch.check_running()?;
        server.namespace.wait_device(&bridge)?;
        all_links.push(links.to_vec());
        Ok(bridge)
    }

    /// Returns the switch's ends of each bond's links.
    pub fn links(&self) -> &[Vec<String>] {
        &self.links
    }

    /// Returns the system id of a bond: the address of its bridge.
    ///
    /// # Errors
    /// There is no such bond.
    pub fn system(&self, bond: usize) -> Result<String> {
        let path = format!("/sys/class/net/{}/address", bridge_name(bond));
        Ok(self.namespace().run(&["cat", &path])?.trim().to_owned())
    }

    /// Sets the switch's end of a link up or down: the other end gets or loses its carrier. Bonds
    /// and links are counted from 0.
    ///
    /// # Errors
    /// There is no such link.
    pub fn set_link(&self, bond: usize, link: usize, up: bool) -> Result<()> {
        let device = self.links.get(bond).and_then(|links| links.get(link));
        let device = device.context("no such link")?;
        let state = if up { "up" } else { "down" };
        self.server.namespace.run(&["ip", "link", "set", device, state]).map(|_| ())
    }
}

/// Returns the name of a bond's bridge, counted from 0.
fn bridge_name(bond: usize) -> String {
    format!("b{}", bond + 1)
}

/// Returns the name of a bond, counted from 0.
fn bond_name(bond: usize) -> String {
    format!("bond{}", bond + 1)
}
