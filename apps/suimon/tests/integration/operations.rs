//! Every operation of the API has a command that requests it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use suimon_contract::command_of;

use crate::disks::CONFIG;
use crate::support::{Daemon, json, outcome};

const DOCUMENT: &str = include_str!("../../../../contract/openapi.json");

/// Operations and their commands. The operation is the first request of the command or, if that
/// succeeds, the last.
const COMMANDS: &[(&str, &str)] = &[
    ("show_host", "host show"),
    ("show_openapi", "openapi"),
    ("export_config", "export"),
    ("show_metrics", "metrics"),
    ("show_top", "top --json"),
    ("list_workers", "worker list"),
    ("list_queues", "queue list"),
    ("move_queue", "queue move web/rx/0 --to 1"),
    ("list_events", "event list"),
    ("follow_events", "event follow"),
    ("list_operations", "operation list"),
    ("show_operation", "operation show 7"),
    ("cancel_operation", "operation cancel 7"),
    ("create_console_login", "console login"),
    ("list_addresses", "switch addresses a"),
    ("capture_nic", "nic capture a --write FILE"),
    ("capture_uplink", "uplink capture a --write FILE"),
    ("list_vmq", "vmq list"),
    ("list_sriov", "vf list"),
    ("show_sriov", "vf show a"),
    ("show_power", "power show"),
    ("replace_power", "power set balanced"),
    ("change_power", "power set turbo=off"),
    ("delete_power", "power unset"),
    ("measure_store", "store measure a"),
    ("inspect_image", "image info --store a b.vhdx"),
    ("check_image", "image check --store a b.vhdx"),
    ("repair_image", "image repair --store a b.vhdx"),
    ("relink_image", "image relink --store a b.vhdx c.vhdx"),
    ("check_disk", "disk check a"),
    ("compact_disk", "disk compact a"),
    ("convert_disk", "disk convert a b.vhd --format vhd"),
    ("merge_disk", "disk merge a"),
    ("reopen_disk", "disk reopen a"),
    ("snapshot_disk", "disk snapshot a b.vhdx"),
    ("list_qos_flows", "qos flows"),
    ("list_cluster_flows", "qos flows --cluster"),
    ("forecast_qos", "qos what-if disk/web min_iops=500"),
    ("show_cluster", "cluster status"),
    ("init_cluster", "cluster init lab --as a --endpoints http://b:2379"),
    ("replace_cluster", "cluster join lab --as a --endpoints http://b:2379"),
    ("change_cluster", "cluster set endpoints=http://b:2379"),
    ("leave_cluster", "cluster leave"),
    ("remove_cluster_node", "cluster remove a"),
    ("drain_node", "node drain a"),
    ("undrain_node", "node undrain a"),
    ("start_vm", "vm start a"),
    ("stop_vm", "vm stop a"),
    ("kill_vm", "vm kill a"),
    ("pause_vm", "vm pause a"),
    ("resume_vm", "vm resume a"),
    ("reset_vm", "vm reset a"),
    ("freeze_vm", "vm freeze a"),
    ("thaw_vm", "vm thaw a"),
    ("migrate_vm", "vm migrate a --to b"),
    ("show_vm_guest", "vm guest a"),
    ("connect_vm_console", "vm console a"),
    ("show_vm_libvirt", "vm xml a"),
    ("list_qos_policies", "qos policy list"),
    ("show_qos_policy", "qos policy show a"),
    ("add_qos_policy", "qos policy add a --max-iops 500"),
    ("change_qos_policy", "qos policy set a --max-iops 500"),
    ("delete_qos_policy", "qos policy delete a"),
    ("add_switch", "switch add a --kind private"),
    ("change_switch", "switch set a --kind internal"),
    ("add_uplink", "uplink add a --device b"),
    ("change_uplink", "uplink set a --device b"),
    ("add_team", "team add a --members b --mode static"),
    ("change_team", "team set a --mode static"),
    ("add_nic", "nic add a --switch b --backend tap"),
    ("change_nic", "nic set a --vlan 5"),
    ("add_store", "store add a --path /b"),
    ("change_store", "store set a --path /b"),
    ("add_disk", "disk add a --store b --format vhdx"),
    ("change_disk", "disk set a --size-bytes 1GiB"),
    ("add_vm", "vm add a --memory-bytes 1GiB"),
    ("change_vm", "vm set a --memory-bytes 1GiB"),
    ("add_pf", "pf add a --device b"),
    ("change_pf", "pf set a --device b"),
    ("add_node", "node add a --address b:1 --ca-certificate /c --token-file /d"),
    ("change_node", "node set a --address b:1"),
];

/// Resources whose commands `list`, `show` and `delete` have the same form.
const RESOURCES: &[(&str, &str)] = &[
    ("switch", "switches"),
    ("uplink", "uplinks"),
    ("team", "teams"),
    ("nic", "nics"),
    ("store", "stores"),
    ("disk", "disks"),
    ("vm", "vms"),
    ("pf", "pfs"),
    ("node", "nodes"),
];

/// Operations that no command requests by itself, and how the command line provides their effect.
const ELSEWHERE: &[(&str, &str)] = &[
    ("apply_host", "`apply -f FILE`, tested in command_line.rs"),
    ("follow_operation", "every change that waits, tested in command_line.rs"),
    ("wait_operation", "the end of `nic capture`"),
    ("show_vmq", "`vmq show NAME` reads the list, to say who has VMQ if that one has none"),
    ("prepare_arrival", "between nodes only: `vm migrate`"),
    ("show_arrival", "between nodes only: `vm migrate`"),
    ("abandon_arrival", "between nodes only: `vm migrate`"),
    ("activate_arrival", "between nodes only: `vm migrate`"),
    ("connect_arrival_memory", "between nodes only: `vm migrate`"),
    ("connect_arrival_disk", "between nodes only: `vm migrate`"),
    ("show_lab", "`lab list`, which reads the folder of results itself"),
    ("list_lab_runs", "`lab list runs`"),
    ("request_lab_run", "`lab run`"),
    ("show_lab_run", "`lab report`"),
    ("show_lab_report", "`lab report`"),
    ("withdraw_lab_request", "`lab stop`"),
    ("compare_lab_runs", "`lab compare`"),
];

/// Returns method and path of each operation by its id.
fn operations() -> BTreeMap<String, (String, String)> {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let mut operations = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().iter();
        // Commands use the new paths of renamed ones.
        for (method, operation) in methods.filter(|(_, operation)| operation["deprecated"] != true)
        {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            let endpoint = (method.to_uppercase(), path.clone());
            assert!(operations.insert(id.clone(), endpoint).is_none(), "{id} occurs twice");
        }
    }
    operations
}

/// Returns true if a request line has this method and path. Parts of the path in braces match any
/// word.
fn matches_request(request: &str, (method, path): &(String, String)) -> bool {
    let mut fields = request.split(' ');
    let (Some(method_sent), Some(target)) = (fields.next(), fields.next()) else { return false };
    let target = target.split('?').next().unwrap_or_default();
    let (parts, path_parts) = (target.split('/'), path.split('/'));
    method_sent == method
        && parts.clone().count() == path_parts.clone().count()
        && parts
            .zip(path_parts)
            .all(|(part, expected_part)| expected_part.starts_with('{') || part == expected_part)
}

fn commands() -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> =
        COMMANDS.iter().map(|(id, command)| ((*id).to_owned(), (*command).to_owned())).collect();
    for (singular, plural) in RESOURCES {
        commands.push((format!("list_{plural}"), format!("{singular} list")));
        commands.push((format!("show_{singular}"), format!("{singular} show a")));
        commands.push((format!("delete_{singular}"), format!("{singular} delete a")));
    }
    commands
}

#[test]
fn every_operation_of_the_api_has_a_command() {
    let operations = operations();
    let commands = commands();
    let mut covered_ids: BTreeSet<&str> = commands.iter().map(|(id, _)| id.as_str()).collect();
    covered_ids.extend(ELSEWHERE.iter().map(|(id, _)| *id));
    // `apply` replaces a whole resource; `set` changes individual keys.
    let is_replaced = |id: &str| id.starts_with("replace_");
    let uncovered: Vec<&String> = operations
        .keys()
        .filter(|id| !covered_ids.contains(id.as_str()) && !is_replaced(id))
        .collect();
    assert!(uncovered.is_empty(), "no command asks for {uncovered:?}");
    let unknown_ids: Vec<&&str> =
        covered_ids.iter().filter(|id| !operations.contains_key(**id)).collect();
    assert!(unknown_ids.is_empty(), "the API has no {unknown_ids:?}");

    // The API's document names the command of each operation.
    for (id, command_line) in &commands {
        let command = command_of(id).unwrap_or_default();
        assert!(
            command_line.starts_with(&command) && !command.is_empty(),
            "{id}: {command_line}, {command}"
        );
    }
    for (id, reason) in ELSEWHERE {
        assert_eq!(command_of(id).is_none(), reason.starts_with("between nodes"), "{id}: {reason}");
    }

    let daemon = Daemon::new(&[("GET /1.0/config ", json("200 OK", CONFIG))]);
    let file = daemon.dir.path().join("frames.pcapng");
    for (id, command_line) in commands {
        let command_line = command_line.replace("FILE", file.to_str().unwrap());
        let arguments: Vec<&str> = command_line.split(' ').collect();
        let before = daemon.requests().len();
        let (_, _, error) = outcome(&daemon.run(&arguments));
        let requests = daemon.requests().split_off(before);
        let is_requested =
            requests.iter().any(|request| matches_request(request, &operations[&id]));
        assert!(
            is_requested,
            "{arguments:?} is to request {id}; it requested {requests:?}: {error}"
        );
    }
}

#[test]
fn names_of_operations_are_names_in_any_language() {
    for id in operations().keys() {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(id.bytes().all(is_plain) && !id.starts_with(|c: char| c.is_ascii_digit()), "{id}");
    }
}
