//! VMs as a table and in detail.

use suimon_contract::{Name, VmConfig, VmStatus};

use crate::lines::{Lines, word};
use crate::resource_tables::Shown;
use crate::table::{Table, or_dash};
use crate::units;

impl Shown for VmConfig {
    const NOUN: &'static str = "VM";
    const PLURAL: &'static str = "VMs";
    const ABOUT_SET: &'static str = "Change keys of a VM; NICs, disks and CPUs while it runs";
    const ABOUT_DELETE: &'static str = "Delete a VM that does not run; its NICs and disks stay";

    fn table(all: &[VmStatus]) -> Table {
        let titles = ["NAME", ">CPUS", ">MEMORY", "NICS", "DISKS", "RUN BY", ">UP", "STATE"];
        let mut table = Table::new(&titles);
        for vm in all {
            table.row([
                vm.config.name.to_string(),
                vm.cpus.unwrap_or(vm.config.cpus).to_string(),
                vm.config.memory_bytes.to_string(),
                names(&vm.config.nics),
                names(&vm.config.disks),
                or_dash(vm.accelerator.as_ref().map(word)),
                or_dash(vm.uptime_s.map(units::age)),
                state(vm),
            ]);
        }
        table
    }

    fn details(one: &VmStatus) -> String {
        let mut lines = Lines::default();
        lines.keys(suimon_contract::Kind::Vm, &one.config);
        lines.add("state", state(one));
        if let Some(process) = one.process {
            lines.add("process", process);
            lines.add("  its user", or_dash(one.user));
            lines.add("up", or_dash(one.uptime_s.map(units::age)));
            lines.add("run by", or_dash(one.accelerator.as_ref().map(word)));
            lines.add("QEMU", or_dash(one.qemu_version.as_ref()));
            lines.add("CPUs now", or_dash(one.cpus));
            lines.add("NICs now", names(&one.nics));
            lines.add("disks now", names(&one.disks));
        }
        if !one.waits_for_start.is_empty() {
            lines.add("at its next start", one.waits_for_start.join(", "));
        }
        lines.text()
    }
}

fn state(vm: &VmStatus) -> String {
    match &vm.reason {
        Some(reason) => format!("{}: {reason}", vm.state),
        None => vm.state.to_string(),
    }
}

fn names(names: &[Name]) -> String {
    let names: Vec<_> = names.iter().map(Name::as_str).collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use suimon_contract::{ByteSize, VmAccelerator, VmState};

    use super::*;

    fn vm(name: &str) -> VmStatus {
        VmStatus::stopped(VmConfig::new(name.parse().unwrap(), ByteSize::new(1 << 30)))
    }

    #[test]
    fn vms_are_shown_as_they_are() {
        let mut web = vm("web");
        web.config.nics = vec!["web".parse().unwrap()];
        web.state = VmState::Running;
        web.process = Some(4711);
        web.user = Some(70_000);
        web.uptime_s = Some(3700);
        web.accelerator = Some(VmAccelerator::Tcg);
        web.cpus = Some(2);
        web.nics = web.config.nics.clone();
        web.qemu_version = Some("7.2.22".to_owned());
        web.waits_for_start = vec!["memory_bytes".to_owned(), "nic/more".to_owned()];
        let mut failed = vm("failed");
        failed.reason = Some("it was killed by signal 9".to_owned());
        let shown = VmConfig::details(&web);
        insta::assert_snapshot!(shown);
        insta::assert_snapshot!(VmConfig::table(&[web, failed]).render());
    }
}
