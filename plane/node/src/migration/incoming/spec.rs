//! Specification of the QEMU process of a VM that is migrating to this node.

use suimon_contract::{ApiError, HostConfig, IncomingMigrationRequest};
use suimon_ports::{MigrationRequirements, VmAccelerator, VmSpec};

use crate::shared::Shared;
use crate::vms::VmEntry;

/// Returns the specification with which the QEMU process of a VM that is migrating to this node is
/// started.
///
/// # Errors
/// The host has no firmware for the VM.
pub(crate) fn incoming_vm_spec(
    shared: &Shared,
    config: &HostConfig,
    request: &IncomingMigrationRequest,
    entry: &VmEntry,
) -> Result<VmSpec, ApiError> {
    let mut started = request.vm_at_start.clone();
    started.name = request.vm.name.clone();
    started.cpus_max = Some(started.effective_cpus_max().max(request.current_cpus));
    started.cpus = request.current_cpus;
    started.nics.clone_from(&request.vm.nics);
    started.disks.clone_from(&request.vm.disks);
    let mut spec = shared.vm_spec(config, &started, entry)?;
    let port = |label: String| {
        let port = request.ports.iter().find(|port| port.device == label);
        port.map(|port| port.port)
    };
    for nic in &mut spec.nics {
        nic.root_port = port(format!("nic/{}", nic.name));
    }
    for disk in &mut spec.disks {
        disk.root_port = port(format!("disk/{}", disk.name));
    }
    spec.accelerator = Some(if request.uses_kvm { VmAccelerator::Kvm } else { VmAccelerator::Tcg });
    spec.migration_requirements = Some(MigrationRequirements {
        machine_type: request.machine_type.clone(),
        qemu_version: request.qemu_version.clone(),
    });
    Ok(spec)
}
