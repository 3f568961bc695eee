//! Contents of a migration: the VM, its NICs, disks and stores, as sent to the destination.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use suimon_contract::{
    ApiError, ByteSize, CopiedDisk, DevicePciPort, DiskConfig, DiskFormat, DiskKind, ErrorCode,
    HandedOverDisk, HostConfig, IncomingMigrationRequest, MIGRATION_PROTOCOL, Name, NicConfig,
    QosPolicyConfig, SourceSwitch, StoreToken, VmConfig,
};
use suimon_ports::{RunningVmStatus, VmAccelerator, VmDevice, VmHardware};

use crate::shared::Shared;
use crate::vms::{StoredRun, VmEntry};

/// Time limit for queries of the space that the disks of a VM occupy.
const ALLOCATED_LIMIT: Duration = Duration::from_secs(2);

fn digits(bytes: [u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the request by which the source asks the destination to prepare a migration.
///
/// # Errors
/// The VM cannot be migrated; the error names the NIC, disk or other cause.
pub(crate) fn incoming_migration_request(
    shared: &Shared,
    entry: &VmEntry,
    run: &StoredRun,
    (properties, layout): (&RunningVmStatus, &VmHardware),
) -> Result<IncomingMigrationRequest, ApiError> {
    let desired = shared.desired();
    let config = &desired.config;
    let refusal =
        |text: &str| ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label());
    let vm = config.vm(entry.name.as_str()).cloned();
    let vm = vm.ok_or_else(|| refusal("the VM is not in the configuration any more"))?;
    let has_all = run.nics == vm.nics.iter().cloned().collect()
        && run.disks == vm.disks.iter().cloned().collect();
    if !has_all {
        let text = "the NICs or disks plugged into the VM differ from its configuration; wait \
                    until its guest has released them, or revert the change";
        return Err(refusal(text));
    }
    entry.check_no_queued_writes(shared, &run.disks)?;
    let disks: Result<Vec<DiskConfig>, ApiError> =
        vm.disks.iter().map(|disk| disk_to_go(shared, config, disk)).collect();
    let disks = disks?;
    let handed_over: Vec<HandedOverDisk> = disks_to_hand_over(config, &vm)
        .iter()
        .filter_map(|disk| shared.handover_properties(disk))
        .collect();
    let stores = tokens(shared, &disks, &handed_over);
    let is_policy = |policy: &&QosPolicyConfig| {
        disks.iter().any(|disk| disk.qos_policy.as_ref() == Some(&policy.name))
    };
    let qos_policies = config.qos_policies.iter().filter(is_policy).cloned().collect();
    let nics: Vec<NicConfig> =
        vm.nics.iter().filter_map(|nic| nic_to_go(config, layout, nic)).collect();
    let copied = copied(shared, &disks, &handed_over);
    let switches = switches_of(config, &nics);
    Ok(IncomingMigrationRequest {
        protocol: MIGRATION_PROTOCOL,
        id: digits((shared.disks.dependencies.random)()),
        source_node: shared.host_name(),
        vm_at_start: VmConfig { name: vm.name.clone(), ..run.start_config.clone() },
        vm,
        // A VM that waits for space is resumed on the destination, unless it was also paused on
        // request.
        is_paused: properties.state == suimon_ports::VmRunState::Paused
            && (run.is_paused_on_request || !properties.waits_for_space),
        uuid: digits(entry.uuid),
        nics,
        disks,
        handed_over_disks: handed_over,
        copied_disks: copied,
        switches,
        stores,
        qos_policies,
        uses_kvm: properties.accelerator == VmAccelerator::Kvm,
        current_cpus: properties.cpus,
        qemu_version: properties.qemu_version.clone(),
        machine_type: layout.machine_type.clone(),
        ports: layout.plugged_devices.iter().map(port_of).collect(),
        cpu_flags: match properties.accelerator {
            VmAccelerator::Kvm => shared.vms.dependencies.host.cpu_flags(),
            VmAccelerator::Tcg => Vec::new(),
        },
    })
}

/// Returns the disks that are copied, with the space that they occupy. A disk whose store does not
/// respond is left out: the destination then does not check the space of its copy.
fn copied(
    shared: &Shared,
    disks: &[DiskConfig],
    handed_over: &[HandedOverDisk],
) -> Vec<CopiedDisk> {
    let until = Instant::now() + ALLOCATED_LIMIT;
    let names = disks.iter().map(|disk| &disk.name);
    let names = names.filter(|name| handed_over.iter().all(|disk| disk.name != **name));
    let copied = names.filter_map(|name| {
        let remaining = until.saturating_duration_since(Instant::now());
        let allocated_bytes = shared.disks.allocated_bytes(name, remaining)?;
        Some(CopiedDisk { name: name.clone(), allocated_bytes })
    });
    copied.collect()
}

fn switches_of(config: &HostConfig, nics: &[NicConfig]) -> Vec<SourceSwitch> {
    let names: BTreeSet<&Name> = nics.iter().map(|nic| &nic.switch).collect();
    let of_nics = config.switches.iter().filter(|switch| names.contains(&switch.name));
    of_nics.map(|switch| SourceSwitch { name: switch.name.clone(), kind: switch.kind }).collect()
}

/// Returns the VM's disks in shared stores, which are handed over instead of copied.
pub(crate) fn disks_to_hand_over(config: &HostConfig, vm: &VmConfig) -> Vec<Name> {
    let is_shared = |disk: &&Name| {
        let disk = config.disks.iter().find(|candidate| candidate.name == **disk);
        disk.is_some_and(|disk| is_shared(config, disk))
    };
    vm.disks.iter().filter(is_shared).cloned().collect()
}

fn is_shared(config: &HostConfig, disk: &DiskConfig) -> bool {
    config.stores.iter().any(|store| store.name == disk.store && store.shared)
}

/// Returns a random token for each store of the handed-over disks, by which the destination
/// verifies that it is the same store.
fn tokens(
    shared: &Shared,
    disks: &[DiskConfig],
    handed_over: &[HandedOverDisk],
) -> Vec<StoreToken> {
    let handed_over_disks = disks
        .iter()
        .filter(|disk| handed_over.iter().any(|handed_over| handed_over.name == disk.name));
    let stores: BTreeSet<&Name> = handed_over_disks.map(|disk| &disk.store).collect();
    let token = |store: &Name| StoreToken {
        store: store.clone(),
        token: digits((shared.disks.dependencies.random)()),
    };
    stores.into_iter().map(token).collect()
}

fn port_of(plugged: &suimon_ports::PluggedDevice) -> DevicePciPort {
    DevicePciPort { device: plugged.device.to_string(), port: plugged.root_port }
}

/// Returns a NIC's configuration with the MAC address that the guest uses, configured or chosen by
/// QEMU.
fn nic_to_go(config: &HostConfig, layout: &VmHardware, name: &Name) -> Option<NicConfig> {
    let mut nic = config.nics.iter().find(|nic| nic.name == *name)?.clone();
    let is_nic = |device: &VmDevice| matches!(device, VmDevice::Nic(nic) if *nic == name.as_str());
    let plugged = layout.plugged_devices.iter().find(|device| is_nic(&device.device));
    nic.mac = nic.mac.or(plugged.and_then(|device| device.mac));
    Some(nic)
}

/// Returns a disk's configuration for the destination: unchanged if it is handed over. The copy of
/// a differencing disk is a dynamic disk without a parent, because the whole content is copied.
fn disk_to_go(shared: &Shared, config: &HostConfig, name: &Name) -> Result<DiskConfig, ApiError> {
    let disk_error =
        |code, text: &str| ApiError::new(code, text).with_resource(format!("disk/{name}"));
    let disk = config.disks.iter().find(|disk| disk.name == *name).cloned();
    let mut disk =
        disk.ok_or_else(|| disk_error(ErrorCode::NotFound, "the disk does not exist"))?;
    if disk.format == DiskFormat::PassThrough {
        let text = "a disk that is a block device of this host cannot migrate, because its \
                    identity and its locks cannot be checked on the other node; copy it to a file \
                    in a store, or unplug it from the VM first";
        return Err(disk_error(ErrorCode::Unsupported, text));
    }
    let is_shared = is_shared(config, &disk);
    if is_shared && disk.controller.is_emulated() {
        let text = "a disk on an IDE or SATA controller cannot be handed over, because QEMU reads \
                    it before the VM has arrived; set controller = \"virtio\", or move it to a \
                    store that is not shared, from which it is copied";
        return Err(disk_error(ErrorCode::Unsupported, text));
    }
    if disk.read_only && !is_shared {
        let text = "a read-only disk can migrate only in a store that both nodes share; move it \
                    to such a store, or unplug it from the VM first";
        return Err(disk_error(ErrorCode::Unsupported, text));
    }
    let Some(size) = shared.disks.disk_size_bytes(name) else {
        let text = "the disk is not in service; `suimon disk show` shows the reason";
        return Err(disk_error(ErrorCode::Conflict, text));
    };
    if is_shared {
        return Ok(disk);
    }
    disk.size_bytes = Some(ByteSize::new(size));
    if disk.kind_of_new_file() == DiskKind::Differencing {
        disk.kind = Some(DiskKind::Dynamic);
        disk.parent = None;
    }
    Ok(disk)
}
