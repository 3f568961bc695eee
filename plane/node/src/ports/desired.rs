//! Devices required by a configuration.

use std::collections::BTreeMap;

use suimon_contract::{
    HostConfig, Name, NicBackend, NicConfig, SocketMode, SwitchConfig, SwitchKind, TeamConfig,
    UplinkConfig, UplinkDriver,
};
use suimon_ports as ports;
use suimon_ports::{
    PortDeviceSpec, StreamNicSpec, TapSpec, UplinkSpec, VhostUserMode, VhostUserNicSpec,
};

use crate::PortKey;
use crate::offloads::offload_toggles;

/// Smallest MTU of a host NIC, in bytes; larger if a NIC on its switch has a larger MTU.
const HOST_NIC_MTU_MIN: u16 = 1500;

/// Required ports with the specification of the device of each.
pub(crate) type RequiredPorts = BTreeMap<PortKey, PortDeviceSpec>;

/// Returns the devices that `config` requires: one for each connected NIC, each uplink that a
/// switch uses directly or in a team, and the host NIC of each internal switch. Unused uplinks are
/// not opened.
pub(crate) fn required_ports(config: &HostConfig) -> RequiredPorts {
    let config = &config.with_derived_sockets();
    let mut required = RequiredPorts::new();
    // A NIC without a VM and without a socket has no device.
    for nic in config.nics.iter().filter(|nic| config.is_connected(nic)) {
        required.insert(PortKey::Nic(nic.name.clone()), nic_spec(nic));
    }
    for uplink in &config.uplinks {
        if find_using_switch(config, &uplink.name).is_some() {
            required.insert(PortKey::Uplink(uplink.name.clone()), uplink_spec(uplink));
        }
    }
    for switch in config.switches.iter().filter(|s| s.kind == SwitchKind::Internal) {
        required.insert(PortKey::HostNic(switch.name.clone()), host_nic_spec(config, switch));
    }
    required
}

/// Returns the switch that uses an uplink (directly or in a team) or a team. Uplinks and teams
/// share one namespace, so `name` is unambiguous.
pub(crate) fn find_using_switch<'c>(
    config: &'c HostConfig,
    name: &Name,
) -> Option<&'c SwitchConfig> {
    let team = config.teams.iter().find(|team| team.members.contains(name));
    let uplink_port = team.map_or(name, |team| &team.name);
    config.switches.iter().find(|switch| switch.uplink.as_ref() == Some(uplink_port))
}

/// Returns the teams that a switch uses, with their switches. Unused teams get no port.
pub(crate) fn required_teams(
    config: &HostConfig,
) -> impl Iterator<Item = (&TeamConfig, &SwitchConfig)> {
    config.teams.iter().filter_map(|team| Some((team, find_using_switch(config, &team.name)?)))
}

/// Returns the device specification of a NIC.
pub(crate) fn nic_spec(nic: &NicConfig) -> PortDeviceSpec {
    match nic.backend {
        NicBackend::VhostUser => PortDeviceSpec::VhostUser(VhostUserNicSpec {
            socket: nic.socket.clone().unwrap_or_default(),
            mode: match nic.socket_mode() {
                Some(SocketMode::Client) => VhostUserMode::Client,
                Some(SocketMode::Server) | None => VhostUserMode::Server,
            },
            queue_pairs: nic.queues,
            mac: nic.mac,
            mtu: nic.mtu,
            offload: offload_toggles(&nic.offload),
            negotiated: ports::NegotiatedFeatures::default(),
        }),
        NicBackend::Legacy => PortDeviceSpec::Stream(StreamNicSpec {
            socket: nic.socket.clone().unwrap_or_default(),
            mac: nic.mac,
            mtu: nic.mtu,
        }),
        NicBackend::Tap => PortDeviceSpec::Tap(TapSpec {
            device: nic.device_name().unwrap_or_default().to_owned(),
            netns: nic.netns.clone(),
            queue_pairs: nic.queues,
            mac: nic.mac,
            keeps_mac: nic.mac_spoofing,
            mtu: nic.mtu,
            offload: offload_toggles(&nic.offload),
            may_use_kernel_path: nic.uses_kernel_path,
        }),
    }
}

/// Returns the device specification of an uplink.
pub(crate) fn uplink_spec(uplink: &UplinkConfig) -> PortDeviceSpec {
    PortDeviceSpec::Uplink(UplinkSpec {
        device: uplink.device.clone(),
        driver: match uplink.driver {
            UplinkDriver::AfPacket => ports::UplinkDriver::AfPacket,
            UplinkDriver::AfXdp => ports::UplinkDriver::AfXdp,
            UplinkDriver::Tap => ports::UplinkDriver::Tap,
        },
        queue_pairs: uplink.queues,
        mtu: uplink.mtu,
        host_addresses: uplink.host_addresses.clone(),
        offload: offload_toggles(&uplink.offload),
    })
}

/// Returns the device specification of an internal switch's host NIC.
fn host_nic_spec(config: &HostConfig, switch: &SwitchConfig) -> PortDeviceSpec {
    PortDeviceSpec::Tap(TapSpec {
        device: switch.host_device_name().unwrap_or_default().to_owned(),
        netns: None,
        queue_pairs: 1,
        mac: None,
        keeps_mac: false,
        mtu: host_nic_mtu(config, switch),
        offload: offload_toggles(&switch.host_offload),
        may_use_kernel_path: false,
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
