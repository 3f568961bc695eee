//! Publication of the kernel path's table, and its status.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use suimon_contract::{HostConfig, KernelPathStatus, NicConfig};
use suimon_forwarding::AddressSighting;
use suimon_frame::{MacAddr, VlanId};
use suimon_ports::{
    KERNEL_PATH_REPORT_INTERVAL, KernelPathAddress, KernelPathPort, KernelPathState,
    KernelPathTable,
};
use suimon_quantity::{PortId, SwitchId, Time};

use crate::PortKey;
use crate::ports::table::Port;
use crate::shared::Shared;

/// Group of ports that the kernel path connects: same switch, VLAN and MTU. Equal MTUs ensure that
/// the frames of each port fit the others.
type Group = (SwitchId, Option<VlanId>, u16);

impl Shared {
    /// Updates the kernel path to the tables that were just published.
    pub(crate) fn publish_kernel_paths(&self, config: &HostConfig) {
        self.kernel_paths.0.lock().unwrap_or_else(PoisonError::into_inner).config = config.clone();
        self.refresh_kernel_paths();
    }

    /// Updates the forwarding table in the kernel. On return, frames of excluded ports pass through
    /// the switch. Called after changes and with every poll of the plane.
    pub(crate) fn refresh_kernel_paths(&self) {
        let mut plan = self.kernel_paths.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !plan.is_in_use && !plan.config.nics.iter().any(|nic| nic.uses_kernel_path) {
            return;
        }
        let (groups, table) = self.kernel_path_table(&plan.config);
        plan.is_in_use = !table.ports.is_empty();
        let result = self.devices.set_kernel_path_table(&table);
        let failed_before = std::mem::replace(&mut plan.has_failed, result.is_err());
        match result {
            Ok(addresses) if addresses.is_empty() => {}
            Ok(addresses) => self.refresh_addresses(&addresses, &groups, &table),
            // The update is repeated with every poll; the error is logged once.
            Err(_) if failed_before => {}
            Err(error) => {
                tracing::warn!(%error, "some frames take the switch instead of the kernel path");
            }
        }
    }

    /// Refreshes addresses seen on the kernel path in the switch, where they would age out
    /// otherwise.
    fn refresh_addresses(
        &self,
        addresses: &[(u32, MacAddr)],
        groups: &[Group],
        table: &KernelPathTable,
    ) {
        // The kernel reports addresses seen within this interval.
        let interval = u64::try_from(KERNEL_PATH_REPORT_INTERVAL.as_nanos()).unwrap_or(u64::MAX);
        let seen_at = Time::from_ns(self.plane.now().as_ns().saturating_sub(interval));
        let learned = addresses.iter().filter_map(|address| {
            let (group, mac) = *address;
            let (switch, vlan, _) = *groups.get(group.checked_sub(1)? as usize)?;
            let address_entry =
                table.addresses.get(address).filter(|address_entry| !address_entry.is_static)?;
            Some(AddressSighting {
                switch,
                vlan,
                mac,
                port: address_entry.port,
                seen_at,
                moved_from: None,
                is_first: false,
            })
        });
        self.plane.refresh_addresses(learned.collect());
    }

    /// Returns the groups and the table for the kernel. Group numbers start with 1.
    fn kernel_path_table(&self, config: &HostConfig) -> (Vec<Group>, KernelPathTable) {
        let ids = self.ids();
        let mut groups = BTreeMap::<Group, Vec<(PortId, bool)>>::new();
        for nic in config.nics.iter().filter(|nic| nic.uses_kernel_path) {
            let port = self.ports.find(&PortKey::Nic(nic.name.clone()));
            let (Some(port), Some(switch)) = (port, ids.switch(&nic.switch)) else { continue };
            if self.kernel_path_obstacle(nic, &port).is_none() {
                let learns = nic.mac.is_none() || nic.mac_spoofing;
                groups.entry((switch, nic.vlan, nic.mtu)).or_default().push((port.id, learns));
            }
        }
        groups.retain(|_, ports| ports.len() > 1);
        let mut table = KernelPathTable::default();
        let mut group_numbers = BTreeMap::new();
        for (number, ((switch, vlan, mtu), ports)) in (1..).zip(&groups) {
            for (port, learns) in ports {
                let on_path = KernelPathPort { group: number, is_learning: *learns, mtu: *mtu };
                table.ports.insert(*port, on_path);
                group_numbers.insert((*switch, *vlan, *port), number);
            }
        }
        let mut switches: Vec<SwitchId> = groups.keys().map(|(switch, ..)| *switch).collect();
        switches.dedup();
        for switch in switches {
            for view in self.plane.addresses(switch) {
                let Some(group) = group_numbers.get(&(switch, view.vlan, view.port)) else {
                    continue;
                };
                let address_entry =
                    KernelPathAddress { port: view.port, is_static: view.is_static };
                table.addresses.insert((*group, view.mac), address_entry);
            }
        }
        (groups.into_keys().collect(), table)
    }

    /// Returns the reason why a NIC with `kernel_path` does not use the kernel path now; `None` if
    /// it does.
    fn kernel_path_obstacle(&self, nic: &NicConfig, port: &Port) -> Option<String> {
        if let Some(reason) = configured_obstacle(nic) {
            return Some(reason.to_owned());
        }
        if self.captures.is_captured(&port.key) {
            return Some("its frames are being captured".to_owned());
        }
        match port.device_status().map(|device| device.kernel_path) {
            Some(Some(KernelPathState::Ready)) => None,
            Some(Some(KernelPathState::Unavailable { reason })) => Some(reason),
            Some(None) | None => Some("its device is not open".to_owned()),
        }
    }

    /// Returns the status of a NIC's kernel path; `None` without `kernel_path`.
    pub(crate) fn kernel_path_status(
        &self,
        nic: &NicConfig,
        port: Option<&Port>,
    ) -> Option<KernelPathStatus> {
        if !nic.uses_kernel_path {
            return None;
        }
        let reason = match port {
            Some(port) => self.kernel_path_obstacle(nic, port),
            None => Some("its device is not open".to_owned()),
        };
        let counters =
            port.map(|port| self.devices.kernel_path_counters(port.id)).unwrap_or_default();
        Some(KernelPathStatus {
            open: reason.is_none(),
            reason,
            rx_frames: counters.sent_frames,
            rx_bytes: counters.sent_bytes,
            tx_frames: counters.received_frames,
            tx_bytes: counters.received_bytes,
        })
    }
}

/// Returns the key in a NIC's configuration that requires the switch to process each frame; `None`
/// if no key does.
fn configured_obstacle(nic: &NicConfig) -> Option<&'static str> {
    if nic.trunk.is_some() {
        return Some("`trunk` is set: frames with VLAN tags go through the switch");
    }
    if nic.isolated {
        return Some("`isolated` is set: the switch separates isolated NICs");
    }
    if nic.bandwidth_max_bps.is_some() {
        return Some("`bandwidth_max_bps` is set: the switch enforces the limit");
    }
    if !nic.offload.rx_checksum || !nic.offload.segmentation {
        return Some(
            "`offload` excludes some: the switch replaces `rx_checksum` and `segmentation` in \
             software",
        );
    }
    None
}
