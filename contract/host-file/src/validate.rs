//! Validation of desired state: values are in range, references exist, and nothing is claimed
//! twice.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::claims::{ExclusiveClaim, ExclusiveObject, exclusive_claims};
use crate::cluster_checks::check_cluster;
use crate::disk_checks::{
    check_disk, check_disk_limits, check_disks_per_store, check_parents_unwritten,
    check_pass_through_exclusive, check_store,
};
use crate::finding::{ERRORS_MAX, Finding, FindingLocation};
use crate::iov_checks::check_iov;
use crate::nbd_checks::check_shared_servers;
use crate::node_checks::check_node;
use crate::pf_checks::check_pf;
use crate::power_checks::check_power;
use crate::qos_checks::check_qos_policy;
use crate::references::{check_names_unique, check_references};
use crate::team_checks::{check_lacp_members, check_member_mtus, check_team};
use crate::uplink_checks::{check_host_addresses_of_teams, check_uplink};
use crate::vm_checks::{check_vm, check_vm_devices};
use crate::vmq_checks::check_vmq_against_host;
use crate::{
    ApiError, ErrorCode, Form, HostConfig, HostSection, Name, NicBackend, NicConfig, ResourceKind,
    SwitchConfig, SwitchKind, VlanRange, table_check,
};

/// Largest number of reported overlaps of one trunk.
const OVERLAPS_MAX: usize = 8;

/// Checks desired state from any source.
///
/// # Errors
/// Every fault with its resource and key; at least one, at most 256.
pub fn validate(config: &HostConfig) -> Result<(), Vec<ApiError>> {
    let mut findings = check_values(config);
    for (index, switch) in config.switches.iter().enumerate() {
        check_switch(FindingLocation::new(ResourceKind::Switch, index), switch, &mut findings);
    }
    for (index, uplink) in config.uplinks.iter().enumerate() {
        check_uplink(FindingLocation::new(ResourceKind::Uplink, index), uplink, &mut findings);
    }
    for (index, team) in config.teams.iter().enumerate() {
        check_team(FindingLocation::new(ResourceKind::Team, index), team, &mut findings);
    }
    for (index, nic) in config.nics.iter().enumerate() {
        check_nic(FindingLocation::new(ResourceKind::Nic, index), nic, &mut findings);
    }
    for (index, policy) in config.qos_policies.iter().enumerate() {
        check_qos_policy(
            FindingLocation::new(ResourceKind::QosPolicy, index),
            policy,
            &mut findings,
        );
    }
    for (index, store) in config.stores.iter().enumerate() {
        check_store(FindingLocation::new(ResourceKind::Store, index), store, &mut findings);
    }
    for (index, disk) in config.disks.iter().enumerate() {
        check_disk(FindingLocation::new(ResourceKind::Disk, index), disk, &mut findings);
    }
    for (index, vm) in config.vms.iter().enumerate() {
        check_vm(FindingLocation::new(ResourceKind::Vm, index), vm, &mut findings);
    }
    for (index, pf) in config.pfs.iter().enumerate() {
        check_pf(FindingLocation::new(ResourceKind::Pf, index), pf, &mut findings);
    }
    for (index, node) in config.nodes.iter().enumerate() {
        check_node(FindingLocation::new(ResourceKind::Node, index), node, &mut findings);
    }
    findings.extend(check_relations(config));
    into_result(config, findings)
}

/// Checks only the names of disks, stores and QoS policies, and the limits of policies and disks.
///
/// # Errors
/// Every fault; at least one, at most 256.
pub fn validate_qos(config: &HostConfig) -> Result<(), Vec<ApiError>> {
    let storage = HostConfig {
        stores: config.stores.clone(),
        qos_policies: config.qos_policies.clone(),
        disks: config.disks.clone(),
        ..HostConfig::default()
    };
    let mut findings = check_values(&storage);
    for (index, policy) in config.qos_policies.iter().enumerate() {
        check_qos_policy(
            FindingLocation::new(ResourceKind::QosPolicy, index),
            policy,
            &mut findings,
        );
    }
    for (index, disk) in config.disks.iter().enumerate() {
        check_disk_limits(FindingLocation::new(ResourceKind::Disk, index), disk, &mut findings);
    }
    check_names_unique(&storage, &mut findings);
    check_references(&storage, &mut findings);
    into_result(config, findings)
}

/// Converts findings to API errors; `Ok` if there are none.
fn into_result(config: &HostConfig, mut findings: Vec<Finding>) -> Result<(), Vec<ApiError>> {
    if findings.is_empty() {
        return Ok(());
    }
    findings.truncate(ERRORS_MAX);
    Err(findings
        .into_iter()
        .map(|finding| {
            let name = finding.location.resource_name(config);
            finding.into_error(name)
        })
        .collect())
}

/// Reports faults of single resources: values out of range, and invalid combinations of a
/// resource's keys.
fn check_values(config: &HostConfig) -> Vec<Finding> {
    let mut findings = shape_of(FindingLocation::new(ResourceKind::Host, 0), &config.host);
    if let Some(api) = &config.api {
        findings.extend(shape_of(FindingLocation::new(ResourceKind::Api, 0), api));
    }
    if let Some(console) = &config.console {
        findings.extend(shape_of(FindingLocation::new(ResourceKind::Console, 0), console));
    }
    if let Some(lab) = &config.lab {
        findings.extend(shape_of(FindingLocation::new(ResourceKind::Lab, 0), lab));
    }
    if let Some(power) = &config.power {
        findings.extend(shape_of(FindingLocation::new(ResourceKind::Power, 0), power));
    }
    if let Some(cluster) = &config.cluster {
        findings.extend(shape_of(FindingLocation::new(ResourceKind::Cluster, 0), cluster));
    }
    findings.extend(shapes_of(ResourceKind::Switch, &config.switches));
    findings.extend(shapes_of(ResourceKind::Uplink, &config.uplinks));
    findings.extend(shapes_of(ResourceKind::Team, &config.teams));
    findings.extend(shapes_of(ResourceKind::Nic, &config.nics));
    findings.extend(shapes_of(ResourceKind::Store, &config.stores));
    findings.extend(shapes_of(ResourceKind::QosPolicy, &config.qos_policies));
    findings.extend(shapes_of(ResourceKind::Disk, &config.disks));
    findings.extend(shapes_of(ResourceKind::Vm, &config.vms));
    findings.extend(shapes_of(ResourceKind::Pf, &config.pfs));
    findings.extend(shapes_of(ResourceKind::Node, &config.nodes));
    findings
}

fn shapes_of<T: Serialize>(kind: ResourceKind, tables: &[T]) -> Vec<Finding> {
    (0..)
        .zip(tables)
        .flat_map(|(index, table)| shape_of(FindingLocation::new(kind, index), table))
        .collect()
}

fn shape_of<T: Serialize>(location: FindingLocation, table: &T) -> Vec<Finding> {
    match serde_json::to_value(table) {
        Ok(Value::Object(table)) => table_check::check_table(location, &table),
        // Serialization fails only for a path that is not UTF-8.
        _ => vec![Finding {
            location,
            field: None,
            code: ErrorCode::InvalidValue,
            message: "contains a path that is not UTF-8; use another path".to_owned(),
        }],
    }
}

/// Returns the findings about relations between resources: references, and conflicts of devices,
/// addresses and names.
pub(crate) fn check_relations(config: &HostConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    host_fits(&config.host, &mut findings);
    check_power(config, &mut findings);
    check_cluster(config, &mut findings);
    check_names_unique(config, &mut findings);
    check_references(config, &mut findings);
    check_claims(config, &mut findings);
    check_member_mtus(config, &mut findings);
    check_lacp_members(config, &mut findings);
    check_host_addresses_of_teams(config, &mut findings);
    check_vmq_against_host(config, &mut findings);
    check_pass_through_exclusive(config, &mut findings);
    check_parents_unwritten(config, &mut findings);
    check_disks_per_store(config, &mut findings);
    check_shared_servers(config, &mut findings);
    check_vm_devices(config, &mut findings);
    check_iov(config, &mut findings);
    findings
}

/// Reports invalid combinations of the host's keys.
fn host_fits(host: &HostSection, findings: &mut Vec<Finding>) {
    if host.worker_cpus.is_some() && host.unpinned_workers.is_some() {
        findings.push(FindingLocation::new(ResourceKind::Host, 0).finding(
            ErrorCode::KeyNotApplicable,
            "floating_workers",
            "applies only if `worker_cpus` names no CPUs; remove one of the two keys",
        ));
    }
}

/// Reports invalid combinations of one switch's keys.
pub(crate) fn check_switch(
    location: FindingLocation,
    switch: &SwitchConfig,
    findings: &mut Vec<Finding>,
) {
    match (switch.kind, &switch.uplink) {
        (SwitchKind::External, None) => findings.push(location.finding(
            ErrorCode::MissingKey,
            "uplink",
            "missing; an external switch needs the name of its uplink or team",
        )),
        (SwitchKind::Private | SwitchKind::Internal, Some(_)) => findings.push(location.finding(
            ErrorCode::KeyNotApplicable,
            "uplink",
            "applies only to external switches; remove this key or set kind = \"external\"",
        )),
        _ => {}
    }
    if switch.kind == SwitchKind::Internal {
        if switch.host_device.is_none() {
            default_device_fits(location, "host_device", &switch.name, findings);
        }
        return;
    }
    let of_the_host_nic = [
        ("host_device", switch.host_device.is_some()),
        ("host_offload", !switch.host_offload.is_default()),
    ];
    for (key, _) in of_the_host_nic.iter().filter(|(_, present)| *present) {
        findings.push(location.finding(
            ErrorCode::KeyNotApplicable,
            key,
            "applies only to internal switches, which have a host NIC; remove this key or set \
             kind = \"internal\"",
        ));
    }
}

/// Reports a resource whose name is also the name of its network device by default, but is not a
/// valid device name.
fn default_device_fits(
    location: FindingLocation,
    field: &str,
    name: &Name,
    findings: &mut Vec<Finding>,
) {
    let form = Form::NetworkDevice;
    if !form.accepts(&Value::from(name.as_str())) {
        findings.push(location.finding(
            ErrorCode::MissingKey,
            field,
            format!("missing; `{name}` cannot name a device, so set it to {}", form.describe()),
        ));
    }
}

/// Reports invalid combinations of one NIC's keys.
pub(crate) fn check_nic(location: FindingLocation, nic: &NicConfig, findings: &mut Vec<Finding>) {
    let mut only_for = |backend: &str, keys: &[(&str, bool)]| {
        for (key, _) in keys.iter().filter(|(_, present)| *present) {
            findings.push(location.finding(
                ErrorCode::KeyNotApplicable,
                key,
                format!(
                    "applies only to NICs with backend = \"{backend}\"; remove this key or set \
                     backend = \"{backend}\""
                ),
            ));
        }
    };
    match nic.backend {
        NicBackend::VhostUser => {
            only_for(
                "tap",
                &[
                    ("device", nic.device.is_some()),
                    ("netns", nic.netns.is_some()),
                    ("kernel_path", nic.uses_kernel_path),
                ],
            );
        }
        NicBackend::Legacy => {
            only_for(
                "tap",
                &[
                    ("device", nic.device.is_some()),
                    ("netns", nic.netns.is_some()),
                    ("kernel_path", nic.uses_kernel_path),
                ],
            );
            let not_here = [
                ("mode", nic.mode.is_some()),
                ("queues", nic.queues != 1),
                ("offload", !nic.offload.is_default()),
            ];
            for (key, _) in not_here.iter().filter(|(_, present)| *present) {
                let text = "does not apply to a legacy NIC, which has one queue pair, no \
                            offloads, and a server socket; remove this key or set backend = \
                            \"vhost-user\"";
                findings.push(location.finding(ErrorCode::KeyNotApplicable, key, text));
            }
        }
        NicBackend::Tap => {
            only_for(
                "vhost-user",
                &[("socket", nic.socket.is_some()), ("mode", nic.mode.is_some())],
            );
            if nic.device.is_none() {
                default_device_fits(location, "device", &nic.name, findings);
            }
        }
    }
    if nic.uses_kernel_path && nic.backend == NicBackend::Tap && nic.netns.is_none() {
        findings.push(location.finding(
            ErrorCode::KeyNotApplicable,
            "kernel_path",
            "a kernel path connects network namespaces; set `netns` or remove this key",
        ));
    }
    trunk_fits(location, nic, findings);
}

fn trunk_fits(location: FindingLocation, nic: &NicConfig, findings: &mut Vec<Finding>) {
    let Some(trunk) = &nic.trunk else { return };
    let mut ranges = trunk.0.clone();
    ranges.sort_unstable();
    let mut highest: Option<VlanRange> = None;
    let before_trunk = findings.len();
    for range in ranges {
        if findings.len().saturating_sub(before_trunk) >= OVERLAPS_MAX {
            return;
        }
        if let Some(before) = highest.filter(|before| before.overlaps(range)) {
            findings.push(location.finding(
                ErrorCode::OverlappingVlans,
                "trunk",
                format!("{} and {} overlap; list every VLAN once", text(before), text(range)),
            ));
        }
        if highest.is_none_or(|before| before.last() < range.last()) {
            highest = Some(range);
        }
    }
    let native = nic.vlan.and_then(|vlan| VlanRange::new(vlan, vlan));
    if let Some(native) = native {
        for range in trunk.0.iter().filter(|range| range.overlaps(native)).take(OVERLAPS_MAX) {
            findings.push(location.finding(
                ErrorCode::OverlappingVlans,
                "trunk",
                format!(
                    "{} contains the native VLAN {} of `vlan`, which is untagged on this NIC; \
                     remove it from one of the two keys",
                    text(*range),
                    native.first()
                ),
            ));
        }
    }
}

fn text(range: VlanRange) -> String {
    if range.first() == range.last() {
        range.first().to_string()
    } else {
        format!("{}-{}", range.first(), range.last())
    }
}

fn check_claims(config: &HostConfig, findings: &mut Vec<Finding>) {
    let mut holders: BTreeMap<ExclusiveObject, (FindingLocation, &'static str)> = BTreeMap::new();
    for ExclusiveClaim { object: claim, location, field } in exclusive_claims(config) {
        let Some((holder, holder_field)) = holders.get(&claim) else {
            holders.insert(claim, (location, field));
            continue;
        };
        if findings.len() >= ERRORS_MAX {
            return;
        }
        let holder_name = holder
            .resource_label(holder.resource_name(config))
            .unwrap_or_else(|| "the file".to_owned());
        findings.push(location.finding(
            ErrorCode::Conflict,
            field,
            format!(
                "{claim} is already used by {holder_name} (its `{holder_field}`); {}",
                match (&claim, holder.kind) {
                    (ExclusiveObject::Uplink(_), ResourceKind::Team)
                        if location.kind == ResourceKind::Switch =>
                    {
                        "use the team, or remove the uplink from it"
                    }
                    (ExclusiveObject::Uplink(_), _) =>
                        "an uplink can serve only one switch or team; use another uplink",
                    (ExclusiveObject::Team(_), _) =>
                        "a team can serve only one switch; use another team",
                    (ExclusiveObject::Nic(_) | ExclusiveObject::Disk(_), _) =>
                        "remove it from one of the two VMs",
                    (ExclusiveObject::Adapter(_), _) =>
                        "remove one of the two descriptions of the adapter",
                    (ExclusiveObject::Device { .. }, _) => "use another device",
                    (ExclusiveObject::Socket(_) | ExclusiveObject::Store(_), _) =>
                        "use another path",
                    (ExclusiveObject::File(_), _) => "use another file",
                    (ExclusiveObject::BlockDevice(_), _) =>
                        "a pass-through disk uses all of its store; use another store",
                    (ExclusiveObject::Listener(_), _) => "use another address or port",
                    (ExclusiveObject::Address { .. }, _) => "set another address for one of them",
                    (ExclusiveObject::Node(_), _) => "remove one of the two nodes",
                }
            ),
        ));
    }
}
