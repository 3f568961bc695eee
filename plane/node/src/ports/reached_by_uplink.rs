//! NICs whose addresses the switch reaches through its uplink or team.
//!
//! A NIC is not behind its own port if its frames use a virtual function, or if another node runs
//! its VM: before a migration to this node is complete, or after the VM was handed over. The switch
//! forwards frames for its address to the uplink or team meanwhile, and accepts frames of this
//! address from there.

use std::collections::BTreeSet;

use suimon_contract::{HostConfig, MigrationPhase, Name, SwitchConfig, VmMigration};
use suimon_quantity::PortId;
use suimon_switch::Topology;

use crate::PortKey;
use crate::control::Controller;
use crate::ports::topology::PlaneIds;
use crate::shared::Shared;
use crate::vms::VmEntry;

impl VmEntry {
    /// Returns true if another node runs the VM according to the state of its migration.
    fn is_away(&self) -> bool {
        let view = self.view();
        let is_theirs = |migration: &VmMigration| {
            !migration.is_outgoing || migration.phase == MigrationPhase::HandedOver
        };
        view.migration.as_ref().is_some_and(is_theirs)
    }
}

impl Shared {
    /// Returns the NICs of VMs that other nodes run.
    pub(crate) fn nics_on_other_nodes(&self, config: &HostConfig) -> BTreeSet<Name> {
        let is_away =
            |name: &Name| self.vms.find(name).as_ref().is_some_and(|entry| entry.is_away());
        let vms = config.vms.iter().filter(|vm| is_away(&vm.name));
        vms.flat_map(|vm| vm.nics.iter().cloned()).collect()
    }

    /// Sets the uplink or team as the location of the addresses of the NICs in `away_nics` and of
    /// NICs on virtual functions.
    pub(crate) fn set_reached_by_uplink(
        &self,
        tables: &mut Topology,
        config: &HostConfig,
        ids: &PlaneIds,
        away_nics: &BTreeSet<Name>,
    ) {
        let on_vfs = self.vf_assignments.nics_on_vfs();
        let is_led = |nic: &Name| away_nics.contains(nic) || on_vfs.contains(nic);
        for nic in config.nics.iter().filter(|nic| is_led(&nic.name)) {
            let switch = config.switches.iter().find(|switch| switch.name == nic.switch);
            let uplink = switch.and_then(|switch| uplink_port(switch, tables, ids));
            let id = ids.port(&PortKey::Nic(nic.name.clone()));
            let port = tables.ports.iter_mut().find(|port| Some(port.spec.id) == id);
            if let (Some(port), Some(uplink)) = (port, uplink) {
                port.spec.reached_by_uplink = Some(uplink);
            }
        }
    }
}

/// Returns the port of a switch's uplink or team; `None` if the tables do not contain it.
fn uplink_port(switch: &SwitchConfig, tables: &Topology, ids: &PlaneIds) -> Option<PortId> {
    let name = switch.uplink.as_ref()?;
    let keys = [PortKey::Uplink(name.clone()), PortKey::Team(name.clone())];
    let mut port_ids = keys.iter().filter_map(|key| ids.port(key));
    port_ids.find(|id| tables.ports.iter().any(|port| port.spec.id == *id))
}

impl Controller {
    /// Publishes new tables if a VM has migrated to or from this node since the last call. Called
    /// in each iteration of the control thread.
    pub(crate) fn publish_moved_nics(&mut self) {
        let desired = self.shared.desired();
        self.update_moved_nics(&desired.config);
    }

    /// Like [`Controller::publish_moved_nics`], for a change in progress: `config` is the
    /// configuration of the published tables.
    pub(crate) fn update_moved_nics(&mut self, config: &HostConfig) {
        let away_nics = self.shared.nics_on_other_nodes(config);
        if away_nics == self.nics_on_other_nodes {
            return;
        }
        match self.shared.publish_tables(config) {
            Ok(()) => self.nics_on_other_nodes = away_nics,
            Err(error) => tracing::error!(
                %error,
                "cannot publish the locations of VMs to the switch"
            ),
        }
        self.schedule_vf_query();
    }
}

#[cfg(test)]
mod tests;
