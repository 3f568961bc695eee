//! Difference of two desired states: the steps that change one into the other.
//!
//! Steps are ordered so that resources exist before others refer to them, and so that ports that
//! only move are not interrupted:
//!
//! 1. Delete VMs, NICs and disks: their devices, sockets, addresses and files become free.
//! 2. Delete switches, teams, uplinks and stores whose device, team, uplink or path another
//!    resource takes over.
//! 3. Replace uplinks and stores.
//! 4. Create uplinks, teams, switches, stores and QoS policies.
//! 5. Apply live changes: host, power, cluster, uplinks, teams, switches, NICs, stores, QoS
//!    policies, disks, VMs. A NIC may move here from a switch deleted in step 7 to one created in
//!    step 4, and a disk from one policy to another.
//! 6. Replace and create NICs and disks, and create VMs. Disks are replaced with their store.
//! 7. Delete the remaining switches, teams, uplinks, stores and policies, which are unreferenced by
//!    now.
//!
//! Replaced resources may exchange devices with each other and with created ones. The executor of
//! the plan therefore takes down all replaced resources before it creates any. Switches and teams
//! may exchange uplinks in the same way; the assignment of uplinks is published in one step.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::SwitchConfig;
use crate::claims::{ExclusiveObject, exclusive_claims};
use crate::plan::NEXT_START;
use crate::{
    ChangeEffect, DiskConfig, FieldChange, HostConfig, NicConfig, Plan, PlanAction, PlanStep,
    ResourceKind, TeamConfig, VmConfig, as_table,
};

impl Plan {
    /// Returns the steps from `from` to `to`, both valid. Empty if the states are equivalent, even
    /// if one spells out a default that the other omits.
    pub fn between(from: &HostConfig, to: &HostConfig) -> Self {
        let from_tables = tables(from);
        let to_tables = tables(to);
        let mut phases = Phases::default();
        phases.deletes(from, to, &from_tables, &to_tables);
        for (id, new) in &to_tables {
            match from_tables.get(id) {
                None => phases.create(id),
                Some(old) => phases.change(id, old, new),
            }
        }
        Self { steps: phases.in_order(), warnings: Vec::new() }
    }

    /// Returns true if the plan has no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// Kind of a resource, and its name if the kind has several. The order is that of live changes:
/// host, API, console, lab, power, cluster, uplinks, teams, switches, NICs, stores, QoS policies,
/// disks, VMs, SR-IOV adapters, other nodes.
type Id = (ResourceKind, String);
type Table = Map<String, Value>;

/// Returns the effective content of every table: defaults filled in, `offload`, `vmq` and `qos`
/// always present.
fn tables(config: &HostConfig) -> BTreeMap<Id, Table> {
    let mut tables = BTreeMap::new();
    tables.insert((ResourceKind::Host, String::new()), as_table(&config.host));
    if let Some(api) = &config.api {
        tables.insert((ResourceKind::Api, String::new()), as_table(api));
    }
    if let Some(console) = &config.console {
        tables.insert((ResourceKind::Console, String::new()), as_table(console));
    }
    if let Some(lab) = &config.lab {
        tables.insert((ResourceKind::Lab, String::new()), as_table(lab));
    }
    if let Some(power) = &config.power {
        tables.insert((ResourceKind::Power, String::new()), as_table(power));
    }
    if let Some(cluster) = &config.cluster {
        tables.insert((ResourceKind::Cluster, String::new()), as_table(cluster));
    }
    for switch in &config.switches {
        let table = as_table(&meant_switch(switch));
        let table = with_table(table, "host_offload", &switch.host_offload);
        tables.insert((ResourceKind::Switch, switch.name.to_string()), table);
    }
    for uplink in &config.uplinks {
        let table = with_table(as_table(uplink), "offload", &uplink.offload);
        let table = with_table(table, "vmq", &uplink.vmq);
        tables.insert((ResourceKind::Uplink, uplink.name.to_string()), table);
    }
    for team in &config.teams {
        let table = with_table(as_table(&meant_team(team)), "vmq", &team.vmq);
        tables.insert((ResourceKind::Team, team.name.to_string()), table);
    }
    for nic in &config.nics {
        let table = with_table(as_table(&meant_nic(nic)), "offload", &nic.offload);
        tables.insert((ResourceKind::Nic, nic.name.to_string()), table);
    }
    for store in &config.stores {
        tables.insert((ResourceKind::Store, store.name.to_string()), as_table(store));
    }
    for policy in &config.qos_policies {
        tables.insert((ResourceKind::QosPolicy, policy.name.to_string()), as_table(policy));
    }
    for disk in &config.disks {
        let table = with_table(as_table(&meant_disk(disk)), "qos", &disk.qos);
        tables.insert((ResourceKind::Disk, disk.name.to_string()), table);
    }
    for vm in &config.vms {
        tables.insert((ResourceKind::Vm, vm.name.to_string()), as_table(&meant_vm(vm)));
    }
    for pf in &config.pfs {
        // Sorted by number, so that the written order has no effect.
        let table = with_table(as_table(pf), "vf", &pf.vf_by_index());
        tables.insert((ResourceKind::Pf, pf.name.to_string()), table);
    }
    for node in &config.nodes {
        tables.insert((ResourceKind::Node, node.name.to_string()), as_table(node));
    }
    tables
}

fn with_table<T: Serialize>(mut table: Table, key: &str, inner: &T) -> Table {
    table.insert(key.to_owned(), to_value(inner));
    table
}

fn meant_switch(switch: &SwitchConfig) -> SwitchConfig {
    let host_device = switch.host_device_name().map(str::to_owned);
    SwitchConfig { host_device, ..switch.clone() }
}

fn meant_team(team: &TeamConfig) -> TeamConfig {
    let lacp = team.lacp();
    TeamConfig {
        lacp_timer: lacp.map(|lacp| lacp.timer),
        lacp_active: lacp.map(|lacp| lacp.active),
        lacp_system_priority: lacp.map(|lacp| lacp.system_priority),
        ..team.clone()
    }
}

fn meant_nic(nic: &NicConfig) -> NicConfig {
    let device = nic.device_name().map(str::to_owned);
    NicConfig { device, mode: nic.socket_mode(), ..nic.clone() }
}

fn meant_vm(vm: &VmConfig) -> VmConfig {
    VmConfig { cpus_max: Some(vm.effective_cpus_max()), ..vm.clone() }
}

fn meant_disk(disk: &DiskConfig) -> DiskConfig {
    DiskConfig {
        file: disk.effective_file(),
        kind: Some(disk.kind_of_new_file()),
        serial: Some(disk.effective_serial()),
        ..disk.clone()
    }
}

fn to_value<T: Serialize>(value: &T) -> Value {
    // Serialization fails only for paths that are not UTF-8, which validation rejects.
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// Steps by phase; the module documentation defines the phases.
#[derive(Default)]
struct Phases {
    leaves_deleted: Vec<PlanStep>,
    deleted_early: Vec<PlanStep>,
    replaced: Vec<PlanStep>,
    created: Vec<PlanStep>,
    changed: Vec<PlanStep>,
    ends_replaced: Vec<PlanStep>,
    ends_created: Vec<PlanStep>,
    deleted_late: Vec<PlanStep>,
    /// Names of stores that the plan replaces. Their disks are replaced with them.
    stores_replaced: BTreeSet<String>,
}

/// Returns true for VMs and for NICs and disks: no other kind of resource refers to them except
/// their VM.
const fn is_leaf(kind: ResourceKind) -> bool {
    matches!(kind, ResourceKind::Nic | ResourceKind::Disk | ResourceKind::Vm)
}

impl Phases {
    fn in_order(self) -> Vec<PlanStep> {
        [
            self.leaves_deleted,
            self.deleted_early,
            self.replaced,
            self.created,
            self.changed,
            self.ends_replaced,
            self.ends_created,
            self.deleted_late,
        ]
        .concat()
    }

    fn deletes(
        &mut self,
        from: &HostConfig,
        to: &HostConfig,
        from_tables: &BTreeMap<Id, Table>,
        to_tables: &BTreeMap<Id, Table>,
    ) {
        let new_claims: BTreeSet<ExclusiveObject> =
            exclusive_claims(to).into_iter().map(|c| c.object).collect();
        let passed_on: BTreeSet<Id> = exclusive_claims(from)
            .into_iter()
            .filter(|claimed| new_claims.contains(&claimed.object))
            .filter_map(|claimed| {
                let name = claimed.location.resource_name(from)?;
                Some((claimed.location.kind, name.to_owned()))
            })
            .collect();
        let mut removed: Vec<_> =
            from_tables.keys().filter(|id| !to_tables.contains_key(*id)).collect();
        removed.sort_by_key(|id| Reverse(id.0));
        for id in removed {
            let phase = match id.0 {
                kind if is_leaf(kind) => &mut self.leaves_deleted,
                _ if passed_on.contains(id) => &mut self.deleted_early,
                _ => &mut self.deleted_late,
            };
            phase.push(step(PlanAction::Delete, id, Vec::new()));
        }
    }

    fn create(&mut self, id: &Id) {
        let phase = if is_leaf(id.0) { &mut self.ends_created } else { &mut self.created };
        phase.push(step(PlanAction::Create, id, Vec::new()));
    }

    fn change(&mut self, id: &Id, old: &Table, new: &Table) {
        let vhost_user = new.get("backend").is_some_and(|backend| backend == "vhost-user");
        let mut changes = Vec::new();
        let mut interrupts = false;
        let mut waits = Vec::new();
        for key in id.0.keys() {
            let before = changes.len();
            field_changes(key.name, old.get(key.name), new.get(key.name), &mut changes);
            if changes.len() > before && key.effect == ChangeEffect::NextVmStart {
                waits.push(key.name);
            }
            interrupts |= changes.len() > before
                && match key.effect {
                    ChangeEffect::Replace => true,
                    ChangeEffect::LiveOnTap => vhost_user,
                    ChangeEffect::Live
                    | ChangeEffect::NextVmStart
                    | ChangeEffect::NextDaemonStart
                    | ChangeEffect::Identity
                    | ChangeEffect::AfterLeavingCluster => false,
                };
        }
        // Stores precede disks in the order of changes.
        let store = new.get("store").and_then(Value::as_str).filter(|_| id.0 == ResourceKind::Disk);
        let with_store = store.filter(|store| self.stores_replaced.contains(*store) && !interrupts);
        if changes.is_empty() && with_store.is_none() {
            return;
        }
        let (phase, action) = match (interrupts || with_store.is_some(), id.0) {
            (false, _) => (&mut self.changed, PlanAction::ChangeLive),
            (true, kind) if is_leaf(kind) => (&mut self.ends_replaced, PlanAction::Replace),
            (true, _) => (&mut self.replaced, PlanAction::Replace),
        };
        if id.0 == ResourceKind::Store && interrupts {
            self.stores_replaced.insert(id.1.clone());
        }
        let mut step = step(action, id, changes);
        if !waits.is_empty() {
            let of_whom = if id.0 == ResourceKind::Vm { "the VM" } else { "VMs" };
            step.note = Some(format!("{} at the next start of {of_whom}", waits.join(", ")));
        }
        if let Some(store) = with_store {
            step.note = Some(format!("together with store/{store}"));
        }
        phase.push(step);
    }
}

fn field_changes(
    field: &str,
    from: Option<&Value>,
    to: Option<&Value>,
    changes: &mut Vec<FieldChange>,
) {
    match (from, to) {
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
            for inner in names {
                let path = format!("{field}.{inner}");
                field_changes(&path, from.get(inner), to.get(inner), changes);
            }
        }
        _ if from != to => changes.push(FieldChange {
            field: field.to_owned(),
            old_value: from.cloned(),
            new_value: to.cloned(),
        }),
        _ => {}
    }
}

fn step(action: PlanAction, (kind, name): &Id, changes: Vec<FieldChange>) -> PlanStep {
    let resource =
        if name.is_empty() { kind.noun().to_owned() } else { format!("{}/{name}", kind.noun()) };
    let note = matches!(kind, ResourceKind::Api | ResourceKind::Console | ResourceKind::Lab)
        .then(|| NEXT_START.to_owned());
    PlanStep { action, resource, changes, note }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "diff_storage_tests.rs"]
mod storage_tests;
