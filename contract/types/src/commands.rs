//! Commands of `suimon` that perform operations of the API.

/// Operation ids of the OpenAPI document and their commands of `suimon`, except the operations that
/// every kind of resource has.
const COMMANDS: &[(&str, &str)] = &[
    ("show_host", "host show"),
    ("show_openapi", "openapi"),
    ("export_config", "export"),
    ("apply_host", "apply"),
    ("show_metrics", "metrics"),
    ("show_top", "top"),
    ("list_workers", "worker list"),
    ("list_queues", "queue list"),
    ("move_queue", "queue move"),
    ("list_events", "event list"),
    ("follow_events", "event follow"),
    ("list_operations", "operation list"),
    ("show_operation", "operation show"),
    ("wait_operation", "operation watch"),
    ("follow_operation", "operation watch"),
    ("cancel_operation", "operation cancel"),
    ("create_console_login", "console login"),
    ("list_addresses", "switch addresses"),
    ("capture_nic", "nic capture"),
    ("capture_uplink", "uplink capture"),
    ("list_vmq", "vmq list"),
    ("show_vmq", "vmq show"),
    ("list_sriov", "vf list"),
    ("show_sriov", "vf show"),
    ("show_power", "power show"),
    ("replace_power", "power set"),
    ("change_power", "power set"),
    ("delete_power", "power unset"),
    ("measure_store", "store measure"),
    ("inspect_image", "image info"),
    ("check_image", "image check"),
    ("repair_image", "image repair"),
    ("relink_image", "image relink"),
    ("check_disk", "disk check"),
    ("compact_disk", "disk compact"),
    ("convert_disk", "disk convert"),
    ("merge_disk", "disk merge"),
    ("reopen_disk", "disk reopen"),
    ("snapshot_disk", "disk snapshot"),
    ("list_qos_policies", "qos policy list"),
    ("show_qos_policy", "qos policy show"),
    ("add_qos_policy", "qos policy add"),
    ("change_qos_policy", "qos policy set"),
    ("delete_qos_policy", "qos policy delete"),
    ("list_qos_flows", "qos flows"),
    ("list_cluster_flows", "qos flows --cluster"),
    ("forecast_qos", "qos what-if"),
    ("show_cluster", "cluster status"),
    ("init_cluster", "cluster init"),
    ("replace_cluster", "cluster join"),
    ("change_cluster", "cluster set"),
    ("leave_cluster", "cluster leave"),
    ("remove_cluster_node", "cluster remove"),
    ("drain_node", "node drain"),
    ("undrain_node", "node undrain"),
    ("start_vm", "vm start"),
    ("stop_vm", "vm stop"),
    ("kill_vm", "vm kill"),
    ("pause_vm", "vm pause"),
    ("resume_vm", "vm resume"),
    ("reset_vm", "vm reset"),
    ("freeze_vm", "vm freeze"),
    ("thaw_vm", "vm thaw"),
    ("migrate_vm", "vm migrate"),
    ("show_vm_guest", "vm guest"),
    ("connect_vm_console", "vm console"),
    ("show_vm_libvirt", "vm xml"),
    ("show_lab", "lab list"),
    ("list_lab_runs", "lab list runs"),
    ("request_lab_run", "lab run"),
    ("show_lab_run", "lab report"),
    ("show_lab_report", "lab report"),
    ("withdraw_lab_request", "lab stop"),
    ("compare_lab_runs", "lab compare"),
];

/// Singular and plural of resource kinds in operation ids. The singular is also the command's noun.
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

/// Returns the command of `suimon` that performs an operation of the API, without arguments: `vm
/// start` for `start_vm`. Returns `None` for operations between nodes, which have no command.
///
/// The operation that replaces a whole resource maps to `apply`.
pub fn command_of(operation_id: &str) -> Option<String> {
    if let Some((_, command)) = COMMANDS.iter().find(|(id, _)| *id == operation_id) {
        return Some((*command).to_owned());
    }
    let (verb, resource) = operation_id.split_once('_')?;
    if verb == "replace" {
        return Some("apply".to_owned());
    }
    let is_named =
        |(singular, plural): &&(&str, &str)| *singular == resource || *plural == resource;
    let (noun, _) = RESOURCES.iter().find(is_named)?;
    let verb = match verb {
        "change" => "set",
        "list" | "show" | "add" | "delete" => verb,
        _ => return None,
    };
    Some(format!("{noun} {verb}"))
}

#[cfg(test)]
mod tests {
    use super::command_of;

    #[test]
    fn operations_of_resources_have_the_noun_and_the_verb() {
        for (id, command) in [
            ("list_nics", "nic list"),
            ("show_vm", "vm show"),
            ("change_disk", "disk set"),
            ("replace_switch", "apply"),
            ("replace_power", "power set"),
            ("change_qos_policy", "qos policy set"),
        ] {
            assert_eq!(command_of(id).as_deref(), Some(command), "{id}");
        }
        assert_eq!(command_of("prepare_arrival"), None);
        assert_eq!(command_of("show_arrival"), None);
    }
}
