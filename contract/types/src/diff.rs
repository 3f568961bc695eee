//! What stands between two desired states: the steps that lead from one to the
//! other.
//!
//! Steps are ordered so that what is needed exists when it is needed, and so
//! that ports which only move are not interrupted:
//!
//! 1. VMs, NICs and disks are deleted: devices, sockets, addresses and files become free.
//! 2. Switches, teams, uplinks and stores are deleted whose device, team, uplink or path
//!    somebody else takes over.
//! 3. Uplinks and stores are replaced.
//! 4. Uplinks, teams, switches, stores and QoS policies are created.
//! 5. Live changes: host, power, cluster, uplinks, teams, switches, NICs, stores, QoS policies, disks, VMs. A
//!    NIC may move here from a switch that is deleted in step 7 to one created in step 4,
//!    and a disk from one policy to another.
//! 6. NICs and disks are replaced and created, and VMs created. Disks are replaced with their
//!    store.
//! 7. The other switches, teams, uplinks, stores and policies are deleted, which nothing
//!    refers to now.
//!
//! Replaced resources may exchange devices with each other and with created
//! ones. Whoever carries the plan out therefore takes down all that is replaced
//! before it makes anything. In the same way switches and teams may exchange uplinks:
//! who uses which is published at once.

use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::SwitchConfig;
use crate::claims::{Claim, claims};
use crate::{
    DiskConfig, Effect, FieldChange, HostConfig, Kind, NicConfig, Plan, PlanAction, PlanStep,
    TeamConfig, VmConfig,
};

impl Plan {
    /// The steps from `from` to `to`, both valid. Empty if they mean the same,
    /// even if one spells out a default that the other leaves out.
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
        Self { steps: phases.in_order() }
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// Which resource: its kind, and its name where there are several. Ordered as
/// live changes are: host, API, console, lab, power, cluster, uplinks, teams, switches, NICs, stores, QoS policies, disks,
/// VMs, adapters with SR-IOV, other nodes.
type Id = (Kind, String);
type Table = Map<String, Value>;

/// Every table with what it means: defaults filled in, `offload`, `vmq` and `qos` always
/// there.
fn tables(config: &HostConfig) -> BTreeMap<Id, Table> {
    let mut tables = BTreeMap::new();
    tables.insert((Kind::Host, String::new()), table(&config.host));
    if let Some(api) = &config.api {
        tables.insert((Kind::Api, String::new()), table(api));
    }
    if let Some(console) = &config.console {
        tables.insert((Kind::Console, String::new()), table(console));
    }
    if let Some(lab) = &config.lab {
        tables.insert((Kind::Lab, String::new()), table(lab));
    }
    if let Some(power) = &config.power {
        tables.insert((Kind::Power, String::new()), table(power));
    }
    if let Some(cluster) = &config.cluster {
        tables.insert((Kind::Cluster, String::new()), table(cluster));
    }
    for switch in &config.switches {
        let table = table(&meant_switch(switch));
        let table = with(table, "host_offload", &switch.host_offload);
        tables.insert((Kind::Switch, switch.name.to_string()), table);
    }
    for uplink in &config.uplinks {
        let table = with(table(uplink), "offload", &uplink.offload);
        let table = with(table, "vmq", &uplink.vmq);
        tables.insert((Kind::Uplink, uplink.name.to_string()), table);
    }
    for team in &config.teams {
        let table = with(table(&meant_team(team)), "vmq", &team.vmq);
        tables.insert((Kind::Team, team.name.to_string()), table);
    }
    for nic in &config.nics {
        let table = with(table(&meant_nic(nic)), "offload", &nic.offload);
        tables.insert((Kind::Nic, nic.name.to_string()), table);
    }
    for store in &config.stores {
        tables.insert((Kind::Store, store.name.to_string()), table(store));
    }
    for policy in &config.qos_policies {
        tables.insert((Kind::QosPolicy, policy.name.to_string()), table(policy));
    }
    for disk in &config.disks {
        let table = with(table(&meant_disk(disk)), "qos", &disk.qos);
        tables.insert((Kind::Disk, disk.name.to_string()), table);
    }
    for vm in &config.vms {
        tables.insert((Kind::Vm, vm.name.to_string()), table(&meant_vm(vm)));
    }
    for pf in &config.pfs {
        // By number, so that the order in which they are written does not matter.
        let table = with(table(pf), "vf", &pf.vf_by_index());
        tables.insert((Kind::Pf, pf.name.to_string()), table);
    }
    for node in &config.nodes {
        tables.insert((Kind::Node, node.name.to_string()), table(node));
    }
    tables
}

fn with<T: Serialize>(mut table: Table, key: &str, inner: &T) -> Table {
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
        kind: Some(disk.effective_kind()),
        serial: Some(disk.effective_serial()),
        ..disk.clone()
    }
}

fn to_value<T: Serialize>(value: &T) -> Value {
    // Only a path that is not UTF-8 fails, and validation refuses it.
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn table<T: Serialize>(value: &T) -> Table {
    match to_value(value) {
        Value::Object(table) => table,
        _ => Table::new(),
    }
}

/// The steps by phase, see the head of this file.
#[derive(Default)]
struct Phases {
    ends_deleted: Vec<PlanStep>,
    deleted_early: Vec<PlanStep>,
    replaced: Vec<PlanStep>,
    created: Vec<PlanStep>,
    changed: Vec<PlanStep>,
    ends_replaced: Vec<PlanStep>,
    ends_created: Vec<PlanStep>,
    deleted_late: Vec<PlanStep>,
    /// Stores among those that are replaced, whose disks are, too.
    stores_replaced: BTreeSet<String>,
}

/// Whether it is a VM or what a VM has, to which nothing else refers.
const fn is_end(kind: Kind) -> bool {
    matches!(kind, Kind::Nic | Kind::Disk | Kind::Vm)
}

impl Phases {
    fn in_order(self) -> Vec<PlanStep> {
        [
            self.ends_deleted,
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
        let wanted: BTreeSet<Claim> = claims(to).into_iter().map(|c| c.claim).collect();
        let passed_on: BTreeSet<Id> = claims(from)
            .into_iter()
            .filter(|claimed| wanted.contains(&claimed.claim))
            .filter_map(|claimed| {
                let name = claimed.place.name_in(from)?;
                Some((claimed.place.kind, name.to_owned()))
            })
            .collect();
        let mut gone: Vec<_> =
            from_tables.keys().filter(|id| !to_tables.contains_key(*id)).collect();
        gone.sort_by_key(|id| Reverse(id.0));
        for id in gone {
            let phase = match id.0 {
                kind if is_end(kind) => &mut self.ends_deleted,
                _ if passed_on.contains(id) => &mut self.deleted_early,
                _ => &mut self.deleted_late,
            };
            phase.push(step(PlanAction::Delete, id, Vec::new()));
        }
    }

    fn create(&mut self, id: &Id) {
        let phase = if is_end(id.0) { &mut self.ends_created } else { &mut self.created };
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
            if changes.len() > before && key.effect == Effect::NextBoot {
                waits.push(key.name);
            }
            interrupts |= changes.len() > before
                && match key.effect {
                    Effect::Replace => true,
                    Effect::LiveOnTap => vhost_user,
                    Effect::Live | Effect::NextBoot | Effect::NextStart | Effect::Identity => false,
                };
        }
        // Stores come before disks in the order of changes.
        let store = new.get("store").and_then(Value::as_str).filter(|_| id.0 == Kind::Disk);
        let with_store = store.filter(|store| self.stores_replaced.contains(*store) && !interrupts);
        if changes.is_empty() && with_store.is_none() {
            return;
        }
        let (phase, action) = match (interrupts || with_store.is_some(), id.0) {
            (false, _) => (&mut self.changed, PlanAction::ChangeLive),
            (true, kind) if is_end(kind) => (&mut self.ends_replaced, PlanAction::Replace),
            (true, _) => (&mut self.replaced, PlanAction::Replace),
        };
        if id.0 == Kind::Store && interrupts {
            self.stores_replaced.insert(id.1.clone());
        }
        let mut step = step(action, id, changes);
        if !waits.is_empty() {
            let of_whom = if id.0 == Kind::Vm { "the VM starts" } else { "VMs start" };
            step.note = Some(format!("{} when {of_whom} next", waits.join(", ")));
        }
        if let Some(store) = with_store {
            step.note = Some(format!("with store/{store}"));
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
            from: from.cloned(),
            to: to.cloned(),
        }),
        _ => {}
    }
}

fn step(action: PlanAction, (kind, name): &Id, changes: Vec<FieldChange>) -> PlanStep {
    let resource =
        if name.is_empty() { kind.word().to_owned() } else { format!("{}/{name}", kind.word()) };
    let note = matches!(kind, Kind::Api | Kind::Console | Kind::Lab)
        .then(|| "takes effect when the daemon starts next".to_owned());
    PlanStep { action, resource, changes, note }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "diff_storage_tests.rs"]
mod storage_tests;
