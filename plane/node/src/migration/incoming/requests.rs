//! Requests of the source node about a VM that is migrating to this node.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use suimon_contract::{
    ApiError, ErrorCode, IncomingMigrationRequest, IncomingMigrationState, Name, Plan, ResourceKind,
};

use super::preconditions::check_switches;
use super::{
    IncomingRequest, IncomingResponse, hex, incoming_vm_spec, not_hexadecimal, parse_vm_uuid,
};
use crate::change::ValidatedChange;
use crate::disks::RequiredDisk;
use crate::migration::versions::source_label;
use crate::shared::Shared;
use crate::vms::{Message, VmEntry, is_migration_activated};
use crate::{ChangeOptions, Edit};

/// Time limit for a driver's response. The driver may be starting the VM's QEMU process.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(40);

/// Returns true if the disk is handed over: both nodes access its file.
fn is_handed_over(request: &IncomingMigrationRequest, disk: &Name) -> bool {
    request.handed_over_disks.iter().any(|handed_over| handed_over.name == *disk)
}

/// Checks that the request contains exactly the VM's NICs and disks, and that each disk can be
/// created or handed over.
fn check_devices_of_vm(request: &IncomingMigrationRequest) -> Result<(), ApiError> {
    let of_vm = |names: &[Name]| names.iter().cloned().collect::<BTreeSet<Name>>();
    let nics: BTreeSet<Name> = request.nics.iter().map(|nic| nic.name.clone()).collect();
    let disks: BTreeSet<Name> = request.disks.iter().map(|disk| disk.name.clone()).collect();
    let handed_over: BTreeSet<Name> =
        request.handed_over_disks.iter().map(|disk| disk.name.clone()).collect();
    let is_its_own = nics == of_vm(&request.vm.nics)
        && disks == of_vm(&request.vm.disks)
        && handed_over.len() == request.handed_over_disks.len()
        && handed_over.is_subset(&disks);
    if !is_its_own {
        let text = "must contain exactly the NICs and disks of the VM, each once";
        return Err(ApiError::new(ErrorCode::InvalidValue, text).with_resource("arrival"));
    }
    let stores: BTreeSet<&Name> = request.stores.iter().map(|token| &token.store).collect();
    for disk in &request.disks {
        let text = if handed_over.contains(&disk.name) {
            let is_known = disk.effective_file().is_some()
                && !disk.controller.is_emulated()
                && stores.contains(&disk.store);
            (!is_known).then_some(
                "a disk that is handed over must be a file of a store shared by both nodes, with \
                 controller = \"virtio\"",
            )
        } else {
            let is_new = disk.size_bytes.is_some()
                && disk.parent.is_none()
                && !disk.read_only
                && disk.effective_file().is_some();
            (!is_new).then_some(
                "a disk that is copied must have a size and a file of its own, must be writable \
                 and have no parent",
            )
        };
        if let Some(text) = text {
            let resource = format!("disk/{}", disk.name);
            return Err(ApiError::new(ErrorCode::InvalidValue, text).with_resource(resource));
        }
    }
    Ok(())
}

/// Adds to each disk's step of a plan whether it is copied or handed over.
fn note_disks(request: &IncomingMigrationRequest, plan: &mut Plan) {
    for disk in &request.disks {
        let label = format!("{}/{}", ResourceKind::Disk.noun(), disk.name);
        let Some(step) = plan.steps.iter_mut().find(|step| step.resource == label) else {
            continue;
        };
        step.note = Some(if is_handed_over(request, &disk.name) {
            format!("handed over: store {} is shared by both nodes", disk.store)
        } else {
            format!("copied from node {}", request.source_node)
        });
    }
}

impl Shared {
    /// Checks that a VM can migrate to this node, and returns the resulting configuration with its
    /// plan.
    ///
    /// # Errors
    /// The reasons why the VM cannot migrate to this node; never empty.
    pub(crate) fn check_incoming_migration(
        &self,
        request: &Arc<IncomingMigrationRequest>,
    ) -> Result<ValidatedChange, Vec<ApiError>> {
        let refuse = |error: ApiError| Err(vec![error]);
        let source = source_label(Some(&request.source_node));
        self.check_protocol(request.protocol.into(), &source).map_err(|error| vec![error])?;
        if hex(&request.id).is_none() {
            return refuse(not_hexadecimal("id"));
        }
        self.check_not_drained().map_err(|error| vec![error])?;
        if self.abandoned_migrations.contains(&request.id) {
            let text = "the source node has cancelled this migration; start another";
            return refuse(
                ApiError::new(ErrorCode::Conflict, text).with_resource("arrival").with_field("id"),
            );
        }
        parse_vm_uuid(request).map_err(|error| vec![error])?;
        check_devices_of_vm(request).map_err(|error| vec![error])?;
        let mut candidate =
            self.check(&Edit::CreateIncomingVm(request.clone()), ChangeOptions::default())?;
        let config = &candidate.state.config;
        let missing = self.missing_cpu_flags(request);
        if !missing.is_empty() {
            let text = format!(
                "the CPU of node {} lacks features that the VM may use: {}; migrate the VM to a \
                 node with these features",
                self.host_name(),
                missing.join(" ")
            );
            return refuse(ApiError::new(ErrorCode::Unsupported, text).with_resource("host"));
        }
        check_switches(request, config, &self.host_name()).map_err(|error| vec![error.into()])?;
        self.check_files(request, &candidate).map_err(|error| vec![error])?;
        self.check_space(request, &candidate).map_err(|error| vec![error])?;
        note_disks(request, &mut candidate.plan);
        let name = request.vm.name.clone();
        let user =
            self.vms.unused_user_id().ok_or_else(|| vec![crate::vms::no_free_user_error(&name)])?;
        let entry = VmEntry::new(name, [0; 16], user);
        let probed = incoming_vm_spec(self, config, request, &entry).and_then(|spec| {
            let probed = self.vms.dependencies.host.probe(&spec);
            probed.map_err(|error| {
                ApiError::new(ErrorCode::HostError, error.text).with_resource(entry.label())
            })
        });
        probed.map(|()| candidate).map_err(|error| vec![error])
    }

    fn missing_cpu_flags(&self, request: &IncomingMigrationRequest) -> Vec<String> {
        if !request.uses_kvm {
            return Vec::new();
        }
        let local_flags: BTreeSet<String> =
            self.vms.dependencies.host.cpu_flags().into_iter().collect();
        request.cpu_flags.iter().filter(|flag| !local_flags.contains(*flag)).cloned().collect()
    }

    /// Checks the disks' files: the file of a copied disk must not exist, because it would be
    /// overwritten; the file of a handed-over disk must exist in the same store.
    fn check_files(
        &self,
        request: &Arc<IncomingMigrationRequest>,
        candidate: &ValidatedChange,
    ) -> Result<(), ApiError> {
        self.check_store_markers(&candidate.state.config, &request.stores, &request.source_node)?;
        for disk in &request.disks {
            let Some(required) = candidate.disks.get(&disk.name) else { continue };
            let (source, local_node) = (&request.source_node, self.host_name());
            let text = match (self.has_file(required)?, is_handed_over(request, &disk.name)) {
                (true, false) => format!(
                    "the store has a file of this name already on node {local_node}; move it away, \
                     or rename the disk on node {source}. If both nodes use the same directory, \
                     set shared = true of the store on both"
                ),
                (false, true) => format!(
                    "the store is shared with node {source}, but has no file of this name on node \
                     {local_node}; check whether the file was renamed or removed"
                ),
                _ => continue,
            };
            let code = ErrorCode::AlreadyExists;
            let code = if is_handed_over(request, &disk.name) { ErrorCode::NotFound } else { code };
            let error = ApiError::new(code, text);
            return Err(error.with_resource(format!("disk/{}", disk.name)).with_field("file"));
        }
        Ok(())
    }

    fn has_file(&self, required: &RequiredDisk) -> Result<bool, ApiError> {
        let resource = format!("{}/{}", ResourceKind::Disk.noun(), required.config.name);
        let plan = required.plan();
        let exists = self.disks.query_store(&required.store.path, move |files| {
            suimon_image_files::exists(files, &plan)
        });
        match exists.map_err(|error| error.with_resource(resource.clone()))? {
            Ok(exists) => Ok(exists),
            Err(error) => {
                Err(ApiError::new(ErrorCode::HostError, error.to_string()).with_resource(resource))
            }
        }
    }

    /// Returns the VM of the incoming migration `id`; `None` if no such migration is in progress.
    pub(crate) fn find_incoming_vm(&self, id: &str) -> Option<Arc<VmEntry>> {
        let is_arriving = |entry: &Arc<VmEntry>| {
            let view = entry.view();
            view.migration
                .as_ref()
                .is_some_and(|migration| !migration.is_outgoing && migration.id == id)
        };
        self.vms.all().into_iter().find(is_arriving)
    }

    fn ended_arrival(&self, id: &str) -> Result<IncomingMigrationState, ApiError> {
        let has_vm_arrived = is_migration_activated(self.store.as_ref(), id);
        let has_vm_arrived = has_vm_arrived.map_err(|error| crate::errors::store_error(&error))?;
        Ok(if has_vm_arrived {
            IncomingMigrationState::Active
        } else {
            IncomingMigrationState::Abandoned
        })
    }

    /// Sends a request to the driver of the VM of the incoming migration `id`, and waits for the
    /// response, at most [`RESPONSE_TIMEOUT`]. If the migration is not in progress, the state store
    /// determines the response: active or abandoned.
    ///
    /// # Errors
    /// The driver rejects the request or does not respond in time, or the state store cannot be
    /// read.
    pub(crate) fn send_incoming_request(
        &self,
        id: &str,
        call: IncomingRequest,
    ) -> Result<IncomingResponse, ApiError> {
        let arrival_error =
            |code, text: &str| ApiError::new(code, text).with_resource(format!("arrival/{id}"));
        let Some(entry) = self.find_incoming_vm(id) else {
            return match (call, self.ended_arrival(id)?) {
                (IncomingRequest::OpenConnection(_), _) => Err(arrival_error(
                    ErrorCode::NotFound,
                    "no incoming migration has this id; it has ended or was cancelled",
                )),
                (IncomingRequest::Query, state) => Ok(IncomingResponse::State(state)),
                (IncomingRequest::Activate | IncomingRequest::Abandon, state) => {
                    // The answer is binding, also for a request that has not been received yet.
                    if state == IncomingMigrationState::Abandoned {
                        self.abandoned_migrations.insert(id);
                    }
                    Ok(IncomingResponse::State(state))
                }
            };
        };
        let (sender, receiver) = sync_channel(1);
        entry.submit(Message::IncomingRequest((call, sender)));
        receiver.recv_timeout(RESPONSE_TIMEOUT).unwrap_or_else(|_| {
            let text = "the thread of the VM does not respond; retry";
            Err(arrival_error(ErrorCode::HostError, text))
        })
    }
}
