//! Text output of VMs.

use suimon_contract::{Name, VmConfig, VmGuest, VmMigration, VmStatus};

use crate::columns;
use crate::detail_text::{DetailText, serialized_name};
use crate::resource_tables::TextOutput;
use crate::table::{Table, or_dash};
use crate::units;

impl TextOutput for VmConfig {
    fn table(statuses: &[VmStatus]) -> Table {
        let mut table = Table::new(&columns::VMS);
        for vm in statuses {
            table.add_row([
                vm.config.name.to_string(),
                vm.cpus.unwrap_or(vm.config.cpus).to_string(),
                vm.config.memory_bytes.to_string(),
                names(&vm.config.nics),
                names(&vm.config.disks),
                or_dash(vm.accelerator.as_ref().map(serialized_name)),
                or_dash(vm.uptime_s.map(units::age)),
                state(vm),
            ]);
        }
        table
    }

    fn details(status: &VmStatus) -> String {
        let mut lines = DetailText::default();
        lines.add_keys(suimon_contract::ResourceKind::Vm, &status.config);
        lines.add("state", state(status));
        if let Some(migration) = &status.migration {
            add_migration(&mut lines, migration);
        }
        if let Some(process) = status.process_id {
            lines.add("process", process);
            lines.add("  user id", or_dash(status.user_id));
            lines.add("uptime", or_dash(status.uptime_s.map(units::age)));
            lines.add(
                "accelerator in use",
                or_dash(status.accelerator.as_ref().map(serialized_name)),
            );
            lines.add("QEMU", or_dash(status.qemu_version.as_ref()));
            lines.add("CPUs now", or_dash(status.cpus));
            lines.add("NICs now", names(&status.nics));
            lines.add("disks now", names(&status.disks));
            lines.add("guest agent", agent(status));
        }
        if !status.settings_pending_start.is_empty() {
            lines.add("pending for next start", status.settings_pending_start.join(", "));
        }
        lines.into_text()
    }
}

fn state(vm: &VmStatus) -> String {
    let state = match &vm.migration {
        Some(migration) if migration.is_outgoing => {
            format!(
                "{}, migrates to {} ({})",
                vm.state,
                migration.peer_node,
                serialized_name(&migration.phase)
            )
        }
        Some(migration) => format!("{}, migrates from {}", vm.state, migration.peer_node),
        None => vm.state.to_string(),
    };
    match &vm.reason {
        Some(reason) => format!("{state}: {reason}"),
        None => state,
    }
}

fn add_migration(lines: &mut DetailText, migration: &VmMigration) {
    lines.add("migration", &migration.id);
    lines
        .add(if migration.is_outgoing { "  to node" } else { "  from node" }, &migration.peer_node);
    lines.add("  phase", serialized_name(&migration.phase));
    for (title, disks) in
        [("  copied", &migration.disks_copied), ("  handed over", &migration.disks_handed_over)]
    {
        if !disks.is_empty() {
            let names: Vec<String> = disks.iter().map(|disk| format!("disk/{disk}")).collect();
            lines.add(title, names.join(", "));
        }
    }
    if migration.is_outgoing {
        let progress = |done, remaining| {
            format!(
                "{} copied, {} left",
                units::decimal_bytes(done),
                units::decimal_bytes(remaining)
            )
        };
        lines.add("  disks", progress(migration.disk_bytes_copied, migration.disk_bytes_remaining));
        lines.add(
            "  memory",
            progress(migration.memory_bytes_copied, migration.memory_bytes_remaining),
        );
    }
}

fn agent(vm: &VmStatus) -> String {
    match (vm.agent_connected, vm.time_to_thaw_s) {
        (_, Some(0)) => "file systems may be frozen; they are being thawed".to_owned(),
        (_, Some(remaining)) => format!("file systems are frozen for at most {remaining} s more"),
        (Some(true), None) => "connected".to_owned(),
        (_, None) => "none".to_owned(),
    }
}

/// Formats information from the guest agent.
pub fn guest_text(guest: &VmGuest) -> String {
    let mut lines = DetailText::default();
    lines.add("name", or_dash(guest.host_name.as_ref()));
    lines.add("system", or_dash(guest.operating_system.as_ref()));
    lines.add("kernel", or_dash(guest.kernel.as_ref()));
    lines.add("machine", or_dash(guest.architecture.as_ref()));
    lines.add("agent", or_dash(guest.agent_version.as_ref()));
    if guest.frozen {
        lines.add("file systems", "frozen; the agent reports little until they are thawed");
    }
    if guest.interfaces.is_empty() {
        return lines.into_text();
    }
    let mut table = Table::new(&columns::GUEST_INTERFACES);
    for interface in &guest.interfaces {
        table.add_row([
            interface.name.clone(),
            or_dash(interface.mac),
            or_dash((!interface.addresses.is_empty()).then(|| interface.addresses.join(", "))),
        ]);
    }
    format!("{}{}", lines.into_text(), table.render())
}

fn names(names: &[Name]) -> String {
    let names: Vec<_> = names.iter().map(Name::as_str).collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use suimon_contract::{ByteSize, MigrationPhase, VmAccelerator, VmGuestInterface, VmState};

    use super::*;

    fn vm(name: &str) -> VmStatus {
        VmStatus::stopped(VmConfig::new(name.parse().unwrap(), ByteSize::new(1 << 30)))
    }

    #[test]
    fn vms_are_shown_as_they_are() {
        let mut web = vm("web");
        web.config.nics = vec!["web".parse().unwrap()];
        web.state = VmState::Running;
        web.process_id = Some(4711);
        web.user_id = Some(70_000);
        web.uptime_s = Some(3700);
        web.accelerator = Some(VmAccelerator::Tcg);
        web.cpus = Some(2);
        web.nics = web.config.nics.clone();
        web.qemu_version = Some("7.2.22".to_owned());
        web.settings_pending_start = vec!["memory_bytes".to_owned(), "nic/more".to_owned()];
        web.agent_connected = Some(true);
        web.time_to_thaw_s = Some(12);
        let mut failed = vm("failed");
        failed.reason = Some("it was killed by signal 9".to_owned());
        let text = VmConfig::details(&web);
        insta::assert_snapshot!(text);
        insta::assert_snapshot!(VmConfig::table(&[web, failed]).render());
    }

    #[test]
    fn migrating_vms_are_shown_with_their_nodes() {
        let migration = VmMigration {
            id: "0123456789abcdef0123456789abcdef".to_owned(),
            is_outgoing: true,
            peer_node: "right".to_owned(),
            phase: MigrationPhase::CopyingMemory,
            disk_bytes_copied: 3 << 30,
            disk_bytes_remaining: 65_536,
            memory_bytes_copied: 700 << 20,
            memory_bytes_remaining: 324 << 20,
            disks_copied: vec!["web".parse().unwrap()],
            disks_handed_over: vec!["logs".parse().unwrap(), "mail".parse().unwrap()],
        };
        let mut web = vm("web");
        web.state = VmState::Running;
        web.migration = Some(migration.clone());
        let mut db = vm("db");
        db.state = VmState::IncomingMigration;
        db.migration =
            Some(VmMigration { is_outgoing: false, peer_node: "left".to_owned(), ..migration });
        insta::assert_snapshot!(VmConfig::details(&web));
        insta::assert_snapshot!(VmConfig::table(&[web, db]).render());
    }

    #[test]
    fn the_report_of_a_guest_agent_is_shown() {
        let address = ("192.0.2.7".parse().unwrap(), 24);
        let mac = Some("52:54:00:78:00:01".parse().unwrap());
        let guest = VmGuest {
            host_name: Some("web".to_owned()),
            operating_system: Some("Debian GNU/Linux 12 (bookworm)".to_owned()),
            interfaces: vec![
                VmGuestInterface::new("eth0".to_owned(), mac, &[address]),
                VmGuestInterface::new("eth1".to_owned(), None, &[]),
            ],
            frozen: true,
            ..VmGuest::default()
        };
        insta::assert_snapshot!(guest_text(&guest));
    }
}
