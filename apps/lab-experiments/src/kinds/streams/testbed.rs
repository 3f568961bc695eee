//! Setup: endpoints of streams in namespaces, connected by Suimon's switch, by the kernel's bridge,
//! or directly by a veth pair.

use std::time::Duration;

use anyhow::{Context, Result};
use suimon_rig::{Daemon, Namespace, Rig, wait_until};

use super::settings::{Combination, NetworkPath};
use crate::loads::lan::{EXTERNAL_ADDRESS, Lan, LanSpec};

const READY_LIMIT: Duration = Duration::from_secs(20);
/// Device in namespaces that are not connected to Suimon's switch.
const DEVICE: &str = "eth0";

/// Setup of the measurement, except the load. Fields are dropped in order.
pub(crate) struct Testbed {
    lan: Option<Lan>,
    /// Namespaces of a bridge or veth pair: VMs first, then the external network.
    plain: Vec<Namespace>,
    _bridge: Option<Namespace>,
    has_world: bool,
}

/// Endpoint that sends or receives a stream.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) address: String,
}

impl Testbed {
    pub(crate) fn set_up(rig: &Rig, combination: Combination, processors: u16) -> Result<Self> {
        let has_world = combination.endpoints.uses_external_network();
        let uplink = match combination.path {
            NetworkPath::Private => None,
            NetworkPath::External => Some(""),
            NetworkPath::LinuxBridge => return Self::bridge(rig, combination),
            NetworkPath::Native => return Self::pair(rig),
        };
        let lan = Lan::set_up(
            rig,
            LanSpec { guests: combination.endpoints.vms(), workers: processors, uplink },
        )?;
        Ok(Self { lan: Some(lan), plain: Vec::new(), _bridge: None, has_world })
    }

    fn bridge(rig: &Rig, combination: Combination) -> Result<Self> {
        let bridge = Namespace::new(rig, "bridge")?;
        bridge.run(&["ip", "link", "add", "br0", "type", "bridge"])?;
        bridge.run(&["ip", "link", "set", "br0", "up"])?;
        let has_world = combination.endpoints.uses_external_network();
        let count = usize::from(combination.endpoints.vms()) + usize::from(has_world);
        let mut plain = Vec::new();
        for index in 0..count {
            let namespace = Namespace::new(rig, "end")?;
            let port = format!("port{index}");
            let peer = ["peer", "name", DEVICE, "netns", namespace.name()];
            bridge.run(&[&["ip", "link", "add", &port, "type", "veth"][..], &peer].concat())?;
            bridge.run(&["ip", "link", "set", &port, "master", "br0", "up"])?;
            namespace.address(DEVICE, &format!("{}/24", plain_address(index)))?;
            plain.push(namespace);
        }
        Self { lan: None, plain, _bridge: Some(bridge), has_world }.wait_reachable()
    }

    fn pair(rig: &Rig) -> Result<Self> {
        let plain = [Namespace::new(rig, "end")?, Namespace::new(rig, "world")?];
        let [near, far] = &plain;
        let peer = ["peer", "name", DEVICE, "netns", far.name()];
        near.run(&[&["ip", "link", "add", DEVICE, "type", "veth"][..], &peer].concat())?;
        for (index, namespace) in plain.iter().enumerate() {
            namespace.address(DEVICE, &format!("{}/24", plain_address(index)))?;
        }
        Self { lan: None, plain: plain.into(), _bridge: None, has_world: true }.wait_reachable()
    }

    /// Waits until the endpoints of a bridge or veth pair reach each other. A [`Lan`] waits by
    /// itself.
    fn wait_reachable(self) -> Result<Self> {
        let to = plain_address(0);
        wait_until("endpoints that reach each other", READY_LIMIT, || {
            Ok(self.plain.iter().all(|from| from.ping(&to).unwrap_or(false)))
        })?;
        Ok(self)
    }

    pub(crate) fn daemon(&self) -> Option<&Daemon> {
        self.lan.as_ref().map(|lan| &lan.daemon)
    }

    /// Returns the namespace and device behind the uplink of Suimon's switch, if it has one.
    pub(crate) fn external_device(&self) -> Option<(&Namespace, &str)> {
        let lan = self.lan.as_ref()?;
        lan.external_namespace().ok().zip(lan.external_device().ok())
    }

    /// Returns the endpoints of the VMs.
    pub(crate) fn vms(&self) -> Vec<Endpoint<'_>> {
        if let Some(lan) = &self.lan {
            let guests = lan.guests.iter();
            return guests
                .map(|guest| Endpoint { namespace: &guest.namespace, address: guest.address() })
                .collect();
        }
        let count = self.plain.len() - usize::from(self.has_world);
        let ends = self.plain.iter().enumerate().take(count);
        ends.map(|(index, namespace)| Endpoint { namespace, address: plain_address(index) })
            .collect()
    }

    /// Returns the endpoint in the external network.
    pub(crate) fn external_endpoint(&self) -> Result<Endpoint<'_>> {
        if let Some(lan) = &self.lan {
            return Ok(Endpoint {
                namespace: lan.external_namespace()?,
                address: EXTERNAL_ADDRESS.to_owned(),
            });
        }
        let namespace = self.plain.last().context("the outside endpoint is missing")?;
        Ok(Endpoint { namespace, address: plain_address(self.plain.len() - 1) })
    }
}

fn plain_address(index: usize) -> String {
    format!("10.77.0.{}", index + 10)
}
