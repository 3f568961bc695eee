//! Devices required by a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use suimon_contract::{
    HostConfig, Name, NicBackend, NicConfig, OffloadConfig, SocketMode, SwitchConfig, SwitchKind,
    TeamConfig, UplinkConfig, UplinkDriver,
};
use suimon_ports as ports;
use suimon_ports::{
    OffloadSwitches, PortSpec, StreamSpec, TapSpec, UplinkSpec, VhostUserMode, VhostUserSpec,
};

use crate::PortKey;

/// Smallest MTU of a host NIC, in bytes; larger if a NIC on its switch has a larger MTU.
const HOST_NIC_MTU_MIN: u16 = 1500;

/// Required ports with the specification of the device of each.
pub(crate) type WantedPorts = BTreeMap<PortKey, PortSpec>;

/// Returns the devices that `config` requires: one for each connected NIC, each uplink that a
/// switch uses directly or in a team, and the host NIC of each internal switch. Unused uplinks are
/// not opened.
pub(crate) fn wanted_ports(config: &HostConfig) -> WantedPorts {
    let config = &config.with_sockets_of_vms();
    let mut wanted = WantedPorts::new();
    // A NIC without a VM and without a socket has no device.
    for nic in config.nics.iter().filter(|nic| config.is_connected(nic)) {
        wanted.insert(PortKey::Nic(nic.name.clone()), nic_spec(nic));
    }
    for uplink in &config.uplinks {
        if switch_of(config, &uplink.name).is_some() {
            wanted.insert(PortKey::Uplink(uplink.name.clone()), uplink_spec(uplink));
        }
    }
    for switch in config.switches.iter().filter(|s| s.kind == SwitchKind::Internal) {
        wanted.insert(PortKey::HostNic(switch.name.clone()), host_nic_spec(config, switch));
    }
    wanted
}

/// Returns the switch that uses an uplink (directly or in a team) or a team. Uplinks and teams
/// share one namespace, so `name` is unambiguous.
pub(crate) fn switch_of<'c>(config: &'c HostConfig, name: &Name) -> Option<&'c SwitchConfig> {
    let team = config.teams.iter().find(|team| team.members.contains(name));
    let way_out = team.map_or(name, |team| &team.name);
    config.switches.iter().find(|switch| switch.uplink.as_ref() == Some(way_out))
}

/// Returns the teams that a switch uses, with their switches. Unused teams get no port.
pub(crate) fn wanted_teams(
    config: &HostConfig,
) -> impl Iterator<Item = (&TeamConfig, &SwitchConfig)> {
    config.teams.iter().filter_map(|team| Some((team, switch_of(config, &team.name)?)))
}

/// Returns the device specification of a NIC.
pub(crate) fn nic_spec(nic: &NicConfig) -> PortSpec {
    match nic.backend {
        NicBackend::VhostUser => PortSpec::VhostUser(VhostUserSpec {
            socket: nic.socket.clone().unwrap_or_default(),
            mode: match nic.socket_mode() {
                Some(SocketMode::Client) => VhostUserMode::Client,
                Some(SocketMode::Server) | None => VhostUserMode::Server,
            },
            queue_pairs: nic.queues,
            mac: nic.mac,
            mtu: nic.mtu,
            offload: offload_switches(&nic.offload),
            promise: ports::VhostUserPromise::default(),
        }),
        NicBackend::Legacy => PortSpec::Stream(StreamSpec {
            socket: nic.socket.clone().unwrap_or_default(),
            mac: nic.mac,
            mtu: nic.mtu,
        }),
        NicBackend::Tap => PortSpec::Tap(TapSpec {
            device: nic.device_name().unwrap_or_default().to_owned(),
            netns: nic.netns.clone(),
            queue_pairs: nic.queues,
            mac: nic.mac,
            keeps_mac: nic.mac_spoofing,
            mtu: nic.mtu,
            offload: offload_switches(&nic.offload),
            kernel_path: nic.kernel_path,
        }),
    }
}

/// Returns the device specification of an uplink.
pub(crate) fn uplink_spec(uplink: &UplinkConfig) -> PortSpec {
    PortSpec::Uplink(UplinkSpec {
        device: uplink.device.clone(),
        driver: match uplink.driver {
            UplinkDriver::AfPacket => ports::UplinkDriver::AfPacket,
            UplinkDriver::AfXdp => ports::UplinkDriver::AfXdp,
            UplinkDriver::Tap => ports::UplinkDriver::Tap,
        },
        queue_pairs: uplink.queues,
        mtu: uplink.mtu,
        host_addresses: uplink.host_addresses.clone(),
        offload: offload_switches(&uplink.offload),
    })
}

/// Returns the device specification of an internal switch's host NIC.
fn host_nic_spec(config: &HostConfig, switch: &SwitchConfig) -> PortSpec {
    PortSpec::Tap(TapSpec {
        device: switch.host_device_name().unwrap_or_default().to_owned(),
        netns: None,
        queue_pairs: 1,
        mac: None,
        keeps_mac: false,
        mtu: host_nic_mtu(config, switch),
        offload: offload_switches(&switch.host_offload),
        kernel_path: false,
    })
}

/// Returns the MTU of the host NIC of `switch`: the largest MTU of the NICs on the switch, at least
/// [`HOST_NIC_MTU_MIN`].
pub(crate) fn host_nic_mtu(config: &HostConfig, switch: &SwitchConfig) -> u16 {
    config
        .nics
        .iter()
        .filter(|nic| nic.switch == switch.name)
        .map(|nic| nic.mtu)
        .fold(HOST_NIC_MTU_MIN, u16::max)
}

pub(crate) fn offload_switches(offload: &OffloadConfig) -> OffloadSwitches {
    OffloadSwitches {
        tx_checksum: offload.tx_checksum,
        rx_checksum: offload.rx_checksum,
        tx_ip_checksum: offload.tx_ip_checksum,
        rx_ip_checksum: offload.rx_ip_checksum,
        segmentation: offload.segmentation,
        receive_coalescing: offload.receive_coalescing,
    }
}

/// Host resource that only one port or disk can hold at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// Unix socket, by its path.
    Socket(PathBuf),
    /// Network device in a network namespace.
    Device(Tap),
    /// File of a disk, or a block device.
    File(PathBuf),
}

/// Network device, by network namespace (`None`: the daemon's) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tap {
    pub(crate) netns: Option<String>,
    pub(crate) device: String,
}

/// Returns the host resource that an open device with this specification holds.
pub(crate) fn claim(spec: &PortSpec) -> Claim {
    match spec {
        PortSpec::VhostUser(spec) => Claim::Socket(clean(&spec.socket)),
        PortSpec::Stream(spec) => Claim::Socket(clean(&spec.socket)),
        PortSpec::Tap(spec) => {
            Claim::Device(Tap { netns: spec.netns.clone(), device: spec.device.clone() })
        }
        PortSpec::Uplink(spec) => Claim::Device(Tap { netns: None, device: spec.device.clone() }),
    }
}

/// Returns the TAP that opening a device with this specification creates if the TAP does not exist.
pub(crate) fn tap_of(spec: &PortSpec) -> Option<Tap> {
    match spec {
        PortSpec::Tap(spec) => Some(Tap { netns: spec.netns.clone(), device: spec.device.clone() }),
        PortSpec::Uplink(spec) if spec.driver == ports::UplinkDriver::Tap => {
            Some(Tap { netns: None, device: spec.device.clone() })
        }
        PortSpec::Uplink(_) | PortSpec::VhostUser(_) | PortSpec::Stream(_) => None,
    }
}

/// Returns the path of the socket file that opening a device with this specification creates.
pub(crate) fn socket_of(spec: &PortSpec) -> Option<PathBuf> {
    match spec {
        PortSpec::VhostUser(spec) if spec.mode == VhostUserMode::Server => {
            Some(clean(&spec.socket))
        }
        PortSpec::Stream(spec) => Some(clean(&spec.socket)),
        PortSpec::VhostUser(_) | PortSpec::Tap(_) | PortSpec::Uplink(_) => None,
    }
}

/// Returns the TAPs that the ports require.
pub(crate) fn wanted_taps(wanted: &WantedPorts) -> BTreeSet<Tap> {
    wanted.values().filter_map(tap_of).collect()
}

/// Returns the path without `.` components and repeated separators, so that paths of the same
/// socket compare equal.
pub(crate) fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}
