//! Validation of a change before its first step.

use std::collections::BTreeSet;

use suimon_contract::{ApiError, ErrorCode, HostConfig, Plan, VmConfig, validate, validate_change};
use suimon_ports::{DeviceErrorKind, PortDeviceSpec, VhostUserMode};

use super::validated_change::ValidatedChange;
use crate::disks::{
    RequiredDisk, check_minimums_fit, plan_deadline, required_disks, required_sockets,
};
use crate::ports::{
    RequiredPorts, assign_addresses, created_socket, device_error, exclusive_resource,
    required_ports, uplink_spec,
};
use crate::shared::Shared;
use crate::state::StoredState;
use crate::transaction::{ExclusiveResource, normalize_path};
use crate::{ChangeOptions, Edit, PortKey};

impl Shared {
    /// Validates a change against the current desired state and the host.
    ///
    /// # Errors
    /// All errors of the first check that fails.
    pub(crate) fn check(
        &self,
        edit: &Edit,
        options: ChangeOptions,
    ) -> Result<ValidatedChange, Vec<ApiError>> {
        let current = self.desired();
        let mut config = edit.apply_to(&current.config)?;
        assign_addresses(&mut config, &current.config, &self.disks.dependencies.random);
        validate(&config)?;
        validate_change(&current.config, &config)?;
        let errors = self.check_cluster(&current.config, &config, options.forces_minimums);
        if !errors.is_empty() {
            return Err(errors);
        }
        let forced = check_minimums_fit(&current.config, &config, &self.disks.measurements());
        if !forced.is_empty() && !options.forces_minimums {
            return Err(forced);
        }
        let mut errors = self.check_vms_stopped(edit, &current.config, &config);
        errors.extend(self.check_migrating_vms_unchanged(edit, &current.config, &config));
        if !errors.is_empty() {
            return Err(errors);
        }
        let disks = required_disks(&config);
        let mut errors = self.disks.check_no_job(&required_disks(&current.config), &disks);
        errors.extend(self.disks.check_not_measured(&config));
        if !options.replaces_images {
            errors.extend(self.disks.check_not_reverted(&required_disks(&current.config), &disks));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let errors =
            self.disks.check_servers(&required_disks(&current.config), &disks, edit.is_apply());
        if !errors.is_empty() {
            return Err(errors);
        }
        let required = required_ports(&config);
        let errors = self.check_devices(&current.config, &config, &required);
        if !errors.is_empty() {
            return Err(errors);
        }
        let errors = self.check_pfs(&current.config, &config);
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut plan = Plan::between(&current.config, &config);
        self.add_power_notes(&current.config, &config, &mut plan);
        let images = self.disks.images_before(edit.disk_of_created_image(options));
        images.add_creation_note(&required_disks(&current.config), &disks, &mut plan);
        let queried_until = plan_deadline();
        let before = required_disks(&current.config);
        self.disks.add_kind_changes((&before, &disks), &mut plan, queried_until);
        let file_text = match edit {
            Edit::ApplyFile { text, .. } => Some(text.clone()),
            _ => current.file_text.clone(),
        };
        let revision = current.revision.saturating_add(1);
        let state = StoredState { revision, config, file_text };
        Ok(ValidatedChange {
            state,
            required,
            disks,
            images,
            plan,
            query_deadline: queried_until,
            forced_errors: forced,
            options,
        })
    }

    /// Returns an error for each disk whose missing image file would fail the change. Queries
    /// stores until [`ValidatedChange::query_deadline`].
    pub(crate) fn missing_images(&self, change: &ValidatedChange) -> Vec<ApiError> {
        if change.options.keeps_faulty_disks {
            return Vec::new();
        }
        let before = required_disks(&self.desired().config);
        let disks = (&before, &change.disks);
        self.disks.check_images_exist(disks, &change.images, change.query_deadline)
    }

    /// Returns errors for CPUs and devices that do not exist or cannot be used.
    fn check_devices(
        &self,
        from: &HostConfig,
        to: &HostConfig,
        required: &RequiredPorts,
    ) -> Vec<ApiError> {
        let mut errors = self.check_cpus(to);
        errors.extend(self.check_vmqs(to));
        let before = required_ports(from);
        // Resources held by the node's own ports and disks are available: the change closes them
        // first.
        let mut claimed: BTreeSet<ExclusiveResource> =
            before.values().map(exclusive_resource).collect();
        let mut listened: BTreeSet<ExclusiveResource> =
            before.values().filter(|spec| is_listening(spec)).map(exclusive_resource).collect();
        let disks = required_disks(from);
        claimed.extend(disks.values().flat_map(RequiredDisk::exclusive_resources));
        listened.extend(
            required_sockets(&disks)
                .iter()
                .map(|path| ExclusiveResource::Socket(normalize_path(path))),
        );
        for (key, spec) in devices_to_probe(from, to, &before, required) {
            // A probe would connect to the socket, which the NIC or disk that listens there would
            // take for a VM.
            if is_listening(&spec) && listened.contains(&exclusive_resource(&spec)) {
                continue;
            }
            if self.is_in_new_vm_folder(to, &spec) {
                continue;
            }
            match self.devices.probe(&spec) {
                Err(e)
                    if e.kind == DeviceErrorKind::Busy
                        && claimed.contains(&exclusive_resource(&spec)) => {}
                Err(error) => errors.push(device_error(&key, &error)),
                Ok(()) => {}
            }
        }
        errors
    }

    /// Returns true if the device is a socket in a VM's folder; the change creates this folder.
    fn is_in_new_vm_folder(&self, to: &HostConfig, spec: &PortDeviceSpec) -> bool {
        let folder = created_socket(spec).and_then(|socket| socket.parent().map(normalize_path));
        let of_vm = |vm: &VmConfig| Some(to.host.vm_folder_path(&vm.name)) == folder;
        folder.is_some() && to.vms.iter().any(of_vm)
    }

    fn check_cpus(&self, config: &HostConfig) -> Vec<ApiError> {
        let cpus = config.host.worker_cpus.iter().flatten();
        cpus.filter(|cpu| !self.cpus.contains(cpu))
            .map(|cpu| {
                let text =
                    format!("the daemon cannot use CPU {cpu}; it can use {}", cpu_list(&self.cpus));
                ApiError::new(ErrorCode::DeviceMissing, text)
                    .with_resource("host")
                    .with_field("worker_cpus")
            })
            .collect()
    }
}

/// Returns true if the device is a socket on which the daemon listens.
fn is_listening(spec: &PortDeviceSpec) -> bool {
    match spec {
        PortDeviceSpec::VhostUser(spec) => spec.mode == VhostUserMode::Server,
        PortDeviceSpec::Stream(_) => true,
        PortDeviceSpec::Tap(_) | PortDeviceSpec::Uplink(_) => false,
    }
}

/// Returns the devices that the change opens or changes, and changed uplinks that no switch uses:
/// their errors are reported now and not by a later change that uses them.
fn devices_to_probe(
    from: &HostConfig,
    to: &HostConfig,
    before: &RequiredPorts,
    required: &RequiredPorts,
) -> Vec<(PortKey, PortDeviceSpec)> {
    let changed = required.iter().filter(|(key, spec)| before.get(key) != Some(spec));
    let mut devices: Vec<_> = changed.map(|(key, spec)| (key.clone(), spec.clone())).collect();
    for uplink in to.uplinks.iter().filter(|uplink| !from.uplinks.contains(uplink)) {
        let key = PortKey::Uplink(uplink.name.clone());
        if !required.contains_key(&key) {
            devices.push((key, uplink_spec(uplink)));
        }
    }
    devices
}

fn cpu_list(cpus: &[u16]) -> String {
    let texts: Vec<String> = cpus.iter().map(u16::to_string).collect();
    texts.join(", ")
}
