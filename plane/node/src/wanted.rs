//! The devices that a configuration asks for.

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

/// The MTU of a host NIC unless a NIC on its switch is larger.
const HOST_NIC_MTU_MIN: u16 = 1500;

/// Ports by what they belong to, with what each stands on.
pub(crate) type WantedPorts = BTreeMap<PortKey, PortSpec>;

/// The device of every NIC that is connected, of every uplink that a switch uses, itself or in a team, and
/// of every internal switch. An uplink that no switch uses is not opened: nothing could
/// come in or go out there.
pub(crate) fn wanted_ports(config: &HostConfig) -> WantedPorts {
    let config = &config.with_sockets_of_vms();
    let mut wanted = WantedPorts::new();
    // A NIC that no VM has and that names no socket is connected to nothing.
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

/// The switch that uses an uplink, itself or in a team, or that uses the team of that
/// name; teams and uplinks share their names.
pub(crate) fn switch_of<'c>(config: &'c HostConfig, name: &Name) -> Option<&'c SwitchConfig> {
    let team = config.teams.iter().find(|team| team.members.contains(name));
    let way_out = team.map_or(name, |team| &team.name);
    config.switches.iter().find(|switch| switch.uplink.as_ref() == Some(way_out))
}

/// The teams that switches use. Those that none uses are not there: nothing could come
/// in or go out.
pub(crate) fn wanted_teams(
    config: &HostConfig,
) -> impl Iterator<Item = (&TeamConfig, &SwitchConfig)> {
    config.teams.iter().filter_map(|team| Some((team, switch_of(config, &team.name)?)))
}

/// What a NIC stands on.
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

/// What an uplink stands on.
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

/// What the host NIC of an internal switch stands on. It takes the largest
/// packets that any NIC on its switch may send.
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

/// The MTU of the host NIC of `switch`.
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

/// What of the host only one port or disk can hold at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// A Unix socket.
    Socket(PathBuf),
    /// A network device in a namespace.
    Device(Tap),
    /// A disk's file, or the block device that it is.
    File(PathBuf),
}

/// A network device by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tap {
    pub(crate) netns: Option<String>,
    pub(crate) device: String,
}

/// What an open device of this kind holds.
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

/// The TAP that opening this makes if it does not exist.
pub(crate) fn tap_of(spec: &PortSpec) -> Option<Tap> {
    match spec {
        PortSpec::Tap(spec) => Some(Tap { netns: spec.netns.clone(), device: spec.device.clone() }),
        PortSpec::Uplink(spec) if spec.driver == ports::UplinkDriver::Tap => {
            Some(Tap { netns: None, device: spec.device.clone() })
        }
        PortSpec::Uplink(_) | PortSpec::VhostUser(_) | PortSpec::Stream(_) => None,
    }
}

/// The socket file that opening this makes.
pub(crate) fn socket_of(spec: &PortSpec) -> Option<PathBuf> {
    match spec {
        PortSpec::VhostUser(spec) if spec.mode == VhostUserMode::Server => {
            Some(clean(&spec.socket))
        }
        PortSpec::Stream(spec) => Some(clean(&spec.socket)),
        PortSpec::VhostUser(_) | PortSpec::Tap(_) | PortSpec::Uplink(_) => None,
    }
}

/// The TAPs that a configuration needs.
pub(crate) fn wanted_taps(wanted: &WantedPorts) -> BTreeSet<Tap> {
    wanted.values().filter_map(tap_of).collect()
}

/// The path without `.` and doubled separators, so that one socket has one claim.
pub(crate) fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}
