//! Trait of resources with text output, and text output of switches, uplinks and NICs.

use suimon_contract::{
    AddressStatus, IovPath, NicBackend, NicConfig, NicStatus, Observed, SwitchConfig, SwitchStatus,
    UplinkConfig, UplinkStatus,
};

use crate::columns;
use crate::detail_text::{DetailText, dropped_frames, health, serialized_name};
use crate::table::{Table, or_dash};
use crate::units;

/// Kind of resource with text output.
pub trait TextOutput: Observed + 'static {
    /// Returns a table with one row per resource.
    fn table(statuses: &[Self::Status]) -> Table;

    /// Returns the complete state of one resource.
    fn details(status: &Self::Status) -> String;
}

impl TextOutput for SwitchConfig {
    fn table(statuses: &[SwitchStatus]) -> Table {
        let mut table = Table::new(&columns::SWITCHES);
        for switch in statuses {
            table.add_row([
                switch.config.name.to_string(),
                serialized_name(&switch.config.kind),
                or_dash(switch.config.uplink.as_ref()),
                switch.nics.len().to_string(),
                units::count(switch.addresses as u64),
                health(&switch.condition),
            ]);
        }
        table
    }

    fn details(status: &SwitchStatus) -> String {
        let mut lines = DetailText::from_resource(&status.config, &status.condition);
        lines.add("addresses", units::count(status.addresses as u64));
        let nics: Vec<_> = status.nics.iter().map(ToString::to_string).collect();
        lines.add("nics", if nics.is_empty() { "–".to_owned() } else { nics.join(", ") });
        if let Some(counters) = &status.host_nic_counters {
            lines.add_counters(counters);
        }
        lines.add_offloads(&status.host_nic_offloads);
        lines.into_text()
    }
}

impl TextOutput for UplinkConfig {
    fn table(statuses: &[UplinkStatus]) -> Table {
        let mut table = Table::new(&columns::UPLINKS);
        for uplink in statuses {
            table.add_row([
                uplink.config.name.to_string(),
                uplink.config.device.clone(),
                serialized_name(&uplink.config.driver),
                or_dash(uplink.switch.as_ref()),
                uplink.mtu.to_string(),
                units::decimal_bytes(uplink.counters.rx_bytes),
                units::decimal_bytes(uplink.counters.tx_bytes),
                units::count(dropped_frames(&uplink.counters)),
                health(&uplink.condition),
            ]);
        }
        table
    }

    fn details(status: &UplinkStatus) -> String {
        let mut lines = DetailText::from_resource(&status.config, &status.condition);
        lines.add("used by switch", or_dash(status.switch.as_ref()));
        lines.add("mtu in effect", status.mtu);
        lines.add("address", or_dash(status.mac));
        if let Some(xdp) = &status.af_xdp {
            lines.add("AF_XDP", xdp);
            lines.add("  lost frames", format!("{} frames", units::count(xdp.lost_frames)));
        }
        if let Some(steering) = &status.steering {
            lines.add("steering", steering);
            for nic in &steering.nics {
                lines.add(&format!("  {}", nic.nic), nic);
            }
        }
        lines.add_counters(&status.counters);
        lines.add_offloads(&status.offloads);
        lines.into_text()
    }
}

impl TextOutput for NicConfig {
    fn table(statuses: &[NicStatus]) -> Table {
        let mut table = Table::new(&columns::NICS);
        for nic in statuses {
            table.add_row([
                nic.config.name.to_string(),
                nic.config.switch.to_string(),
                backend(&nic.config),
                vlans(&nic.config),
                path(nic),
                nic.queue_pairs.to_string(),
                units::decimal_bytes(nic.counters.rx_bytes),
                units::decimal_bytes(nic.counters.tx_bytes),
                units::count(dropped_frames(&nic.counters)),
                health(&nic.condition),
            ]);
        }
        table
    }

    fn details(status: &NicStatus) -> String {
        let mut lines = DetailText::from_resource(&status.config, &status.condition);
        lines.add("queue pairs in use", status.queue_pairs);
        lines.add("addresses learned", status.learned_macs);
        if let Some(mac) = status.bound_mac {
            lines.add("bound address", mac);
        }
        if let Some(features) = &status.virtio_features {
            lines.add("virtio features", features);
        }
        if let Some(iov) = &status.iov {
            lines.add("path", iov);
        }
        lines.add_counters(&status.counters);
        if let Some(path) = &status.kernel_path {
            lines.add_kernel_path(path);
        }
        lines.add_offloads(&status.offloads);
        lines.into_text()
    }
}

/// Returns a table with one row per MAC address of a switch.
pub fn address_table(addresses: &[AddressStatus]) -> Table {
    let mut table = Table::new(&columns::ADDRESSES);
    for address in addresses {
        let age = address.age_s.map(units::age);
        table.add_row([
            address.mac.to_string(),
            or_dash(address.vlan),
            address.port.clone(),
            if address.is_static { "fixed".to_owned() } else { or_dash(age) },
        ]);
    }
    table
}

fn backend(nic: &NicConfig) -> String {
    match (nic.backend, nic.device_name(), &nic.netns) {
        (NicBackend::VhostUser, ..) => "vhost-user".to_owned(),
        (NicBackend::Legacy, ..) => "legacy".to_owned(),
        (NicBackend::Tap, Some(device), Some(netns)) => format!("tap {device} in {netns}"),
        (NicBackend::Tap, device, _) => format!("tap {}", device.unwrap_or_default()),
    }
}

/// Formats the path of a NIC with `iov_weight`: `VF 3 of 0000:03:00.0` or `synthetic`.
fn path(nic: &NicStatus) -> String {
    let path = nic.iov.as_ref().map(|iov| match iov.path {
        IovPath::Vf => iov.to_string(),
        IovPath::Paravirtual => "synthetic".to_owned(),
    });
    or_dash(path)
}

/// Formats VLANs: `10`, or `10 trunk 20,30-39`.
fn vlans(nic: &NicConfig) -> String {
    let native = nic.vlan.map(|vlan| vlan.to_string());
    let Some(trunk) = &nic.trunk else { return or_dash(native) };
    let ranges: Vec<String> = trunk
        .0
        .iter()
        .map(|range| {
            if range.first() == range.last() {
                range.first().to_string()
            } else {
                format!("{}-{}", range.first(), range.last())
            }
        })
        .collect();
    let trunk = format!("trunk {}", ranges.join(","));
    native.map_or_else(|| trunk.clone(), |native| format!("{native} {trunk}"))
}

#[cfg(test)]
#[path = "resource_tables_tests.rs"]
mod tests;
