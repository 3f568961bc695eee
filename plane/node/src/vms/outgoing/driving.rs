//! Migration of a VM to another node, by its driver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{
    ApiError, ErrorCode, IncomingMigrationRequest, IncomingMigrationState, MigrateVmRequest,
    MigrationPhase, Name, OperationState,
};
use suimon_ports::{MigrationSpec, MigrationTransferPhase, VmCommand};

use super::{MigrationParams, OutgoingMigration, SWITCHOVER_POLL_INTERVAL, Stage};
use crate::disks::{CreatedStoreMarker, DiskMirror, OutgoingDisk};
use crate::migration::{disks_to_hand_over, incoming_migration_request};
use crate::operations::OperationHandle;
use crate::remote_nodes::peer_error;
use crate::vms::driver::Driver;
use crate::vms::incoming::copied_disks;
use crate::vms::migration_limits::{
    FINAL_COPY_TIMEOUT, PROGRESS_QUERY_INTERVALS, SWITCHOVER_TIMEOUT,
};
use crate::vms::records::{StoredMigration, StoredMigrationState};
use crate::vms::texts;
use crate::{PeerError, PeerStream};

/// Interval between steps while data is copied, and while the VM is stopped for the switchover.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Limit on the time in which the guest must release its VFs, in units of
/// `Driver::peer_request_interval`.
const VF_RELEASE_LIMIT: u32 = 120;

/// Number of steps of the migration's operation, by which its progress is shown.
const PARTS: usize = 1000;

/// Disks that are handed over instead of copied, and the marks of their stores.
#[derive(Default)]
struct HandedOverDisks {
    disks: Vec<OutgoingDisk>,
    marks: Vec<CreatedStoreMarker>,
}

impl Driver {
    /// Starts the migration of the VM to another node.
    pub(in crate::vms) fn begin_outgoing(
        &mut self,
        request: &MigrateVmRequest,
        operation: OperationHandle,
    ) {
        if !operation.begin() {
            return;
        }
        match self.prepare_destination(request) {
            Ok((order, migration, handed_over, far_operation)) => {
                self.end_space_wait();
                self.append(texts::migration_started_event(
                    &self.entry,
                    migration.destination_node.as_str(),
                ));
                self.report_vm_migrating(true);
                let stage = Stage::Preparing(Box::new(order), far_operation);
                let outgoing = OutgoingMigration::new(migration, Some(operation), stage);
                let HandedOverDisks { disks: handed_over, marks } = handed_over;
                self.outgoing = Some(OutgoingMigration {
                    handed_over_disks: handed_over,
                    store_markers: marks,
                    ..outgoing
                });
                self.publish_outgoing_progress();
            }
            Err(error) => operation.end(&Err(error)),
        }
    }

    /// Records the migration, then requests the destination to prepare the VM. The record enables
    /// the next daemon to tell the destination that the VM stays here.
    fn prepare_destination(
        &mut self,
        request: &MigrateVmRequest,
    ) -> Result<(MigrationParams, StoredMigration, HandedOverDisks, u64), ApiError> {
        self.entry.check_can_migrate()?;
        self.check_no_pending_unplug()?;
        let peer = self.shared.peer_node(&request.destination)?;
        // Reserves the disks for the migration before the destination receives their description.
        let handed_over = self.disks_to_hand_over()?;
        let arrival = self.arrival_request()?;
        let marks = self.shared.create_store_markers(&arrival.stores)?;
        let copied = copied_disks(&arrival);
        let migration = StoredMigration {
            id: arrival.id.clone(),
            destination_node: request.destination.clone(),
            was_paused: arrival.is_paused,
            deletes_files: request.deletes_source_files,
            copied_disks: copied.clone(),
            handed_over_disks: handed_over.iter().map(|disk| disk.name().clone()).collect(),
            stores: arrival.stores.clone(),
        };
        if !self.save_migration_record(Some(StoredMigrationState::Outgoing(migration.clone()))) {
            self.migration_record = None;
            let text = "the state directory cannot be written, and a restart of the daemon would \
                        not cancel the migration; `suimon host show` shows the reason";
            return Err(self.error(ErrorCode::HostError, text));
        }
        let result = peer.prepare_incoming_migration(&arrival);
        let operation = result.map_err(|error| {
            if matches!(error, PeerError::Unreachable(_)) {
                let _ = peer.abandon_incoming_migration(&arrival.id);
            }
            self.shared.migration_request_error(&request.destination, peer.as_ref(), error)
        });
        let operation = match operation {
            Ok(operation) => operation.id,
            Err(error) => {
                self.migration_record = None;
                self.save_run();
                return Err(error);
            }
        };
        let send = MigrationSpec {
            downtime_max: Duration::from_millis(request.downtime_ms.into()),
            bytes_per_second: request
                .bandwidth_max_bytes_per_s
                .map(suimon_contract::ByteSize::bytes),
        };
        let order = MigrationParams { target_node: peer, send, disks: copied };
        Ok((order, migration, HandedOverDisks { disks: handed_over, marks }, operation))
    }

    fn disks_to_hand_over(&self) -> Result<Vec<OutgoingDisk>, ApiError> {
        let desired = self.shared.desired();
        let vm = desired.config.vm(self.entry.name.as_str());
        let names = vm.map(|vm| disks_to_hand_over(&desired.config, vm)).unwrap_or_default();
        names.iter().map(|disk| OutgoingDisk::begin(&self.shared, disk)).collect()
    }

    fn arrival_request(&self) -> Result<IncomingMigrationRequest, ApiError> {
        let Some(run) = &self.run else { return Err(self.not_running_error()) };
        let layout = run.vm.hardware().map_err(|error| self.api_error(&error))?;
        incoming_migration_request(
            &self.shared,
            &self.entry,
            &run.stored,
            (&run.vm.status(), &layout),
        )
    }

    /// Executes the next step of the outgoing migration, if there is one and its step is due.
    pub(in crate::vms) fn poll_outgoing(&mut self, now: Instant) {
        let Some(mut outgoing) = self.outgoing.take_if(|outgoing| outgoing.next_poll_at <= now)
        else {
            return;
        };
        let cancelled = outgoing.operation.as_ref().is_some_and(OperationHandle::is_cancelled);
        let is_handed_over = matches!(outgoing.stage, Stage::HandedOver { .. });
        let stepped = if cancelled && !is_handed_over {
            Err(self.error(
                ErrorCode::Cancelled,
                "the migration was cancelled; the VM continues to run here",
            ))
        } else {
            self.step(&mut outgoing)
        };
        match stepped {
            Ok(Some(wait)) => {
                outgoing.next_poll_at = Instant::now() + wait;
                let is_new = !is_handed_over && matches!(outgoing.stage, Stage::HandedOver { .. });
                self.outgoing = Some(outgoing);
                self.publish_outgoing_progress();
                if is_new {
                    self.notify_location_changed();
                }
            }
            Ok(None) => {}
            Err(error) => self.end_failed_outgoing(outgoing, error),
        }
    }

    /// Executes one step. Returns the time until the next step, or `None` if the migration is
    /// complete.
    ///
    /// # Errors
    /// The migration has failed and the VM stays here.
    fn step(&mut self, outgoing: &mut OutgoingMigration) -> Result<Option<Duration>, ApiError> {
        let target = outgoing.migration.destination_node.clone();
        let far = |error| peer_error(&target, error);
        self.query_destination(outgoing)?;
        let stage = std::mem::replace(&mut outgoing.stage, Stage::HandedOver { is_reported: true });
        let (stage, wait) = match stage {
            Stage::Preparing(order, operation) => {
                let remote_operation = order.target_node.operation(operation).map_err(far)?;
                match remote_operation.state {
                    OperationState::Running => (Stage::Preparing(order, operation), POLL_INTERVAL),
                    OperationState::Succeeded => {
                        let mirrors =
                            self.begin_mirrors(&outgoing.migration.id, &target, &order)?;
                        (Stage::CopyingDisks(order, mirrors), Duration::ZERO)
                    }
                    OperationState::Failed | OperationState::Cancelled => {
                        let error = remote_operation.error.into_iter().collect();
                        return Err(far(PeerError::Rejected(error)));
                    }
                }
            }
            Stage::CopyingDisks(order, mirrors) => {
                outgoing.note_disks(&mirrors);
                self.check_mirrors(&mirrors)?;
                self.check_no_known_queued_writes()?;
                let has_copied_all = |mirror: &DiskMirror| mirror.progress().has_copied_all;
                if mirrors.iter().all(has_copied_all) && self.has_released_vfs(outgoing)? {
                    let line = order
                        .target_node
                        .open_incoming_connection(&outgoing.migration.id, &PeerStream::Memory)
                        .map_err(far)?;
                    let vm = self.vm_that_leaves()?;
                    vm.migrate_out(line, &order.send).map_err(|error| self.api_error(&error))?;
                    (Stage::CopyingMemory(order, mirrors), Duration::ZERO)
                } else {
                    (Stage::CopyingDisks(order, mirrors), POLL_INTERVAL)
                }
            }
            Stage::CopyingMemory(order, mirrors) => {
                outgoing.note_disks(&mirrors);
                self.check_mirrors(&mirrors)?;
                self.look_at_memory(outgoing, order, mirrors)?
            }
            Stage::Switchover(until) => self.poll_remaining_memory(outgoing, until)?,
            Stage::HandedOver { is_reported } => {
                return self.request_activation(outgoing, is_reported);
            }
        };
        outgoing.stage = stage;
        Ok(Some(wait))
    }

    /// Queries the state of the migration on the destination once in `PROGRESS_QUERY_INTERVALS`.
    /// The query also keeps the destination from abandoning the migration.
    ///
    /// # Errors
    /// The destination does not respond or has abandoned the VM.
    fn query_destination(&self, outgoing: &mut OutgoingMigration) -> Result<(), ApiError> {
        let peer = match &outgoing.stage {
            Stage::CopyingDisks(order, _) | Stage::CopyingMemory(order, _) => &order.target_node,
            Stage::Preparing(..) | Stage::Switchover(_) | Stage::HandedOver { .. } => return Ok(()),
        };
        if outgoing.last_query_at.elapsed() < self.peer_request_interval * PROGRESS_QUERY_INTERVALS
        {
            return Ok(());
        }
        let arrival = peer.incoming_migration(&outgoing.migration.id);
        let arrival =
            arrival.map_err(|error| peer_error(&outgoing.migration.destination_node, error))?;
        outgoing.last_query_at = Instant::now();
        if arrival.state == IncomingMigrationState::InProgress {
            return Ok(());
        }
        let text = format!(
            "node {} cancelled the migration; its log has the reason",
            outgoing.migration.destination_node
        );
        Err(self.error(ErrorCode::HostError, &text))
    }

    /// Returns true if the guest has released its VFs. Memory that a VF writes to by DMA cannot be
    /// migrated.
    ///
    /// # Errors
    /// The guest has not released them within `VF_RELEASE_LIMIT`.
    fn has_released_vfs(&self, outgoing: &mut OutgoingMigration) -> Result<bool, ApiError> {
        if !self.has_vfs() {
            return Ok(true);
        }
        let since = *outgoing.vf_release_since.get_or_insert_with(Instant::now);
        let limit = self.peer_request_interval * VF_RELEASE_LIMIT;
        if since.elapsed() < limit {
            return Ok(false);
        }
        let text = format!(
            "the guest has not released its VF in {} s; set iov_weight = 0 of its NICs and check \
             the guest",
            limit.as_secs()
        );
        Err(self.error(ErrorCode::HostError, &text))
    }

    fn begin_mirrors(
        &self,
        id: &str,
        target: &Name,
        order: &MigrationParams,
    ) -> Result<Vec<DiskMirror>, ApiError> {
        let begin = |disk: &Name| {
            let line =
                order.target_node.open_incoming_connection(id, &PeerStream::Disk(disk.clone()));
            DiskMirror::start(&self.shared, disk, line.map_err(|error| peer_error(target, error))?)
        };
        order.disks.iter().map(begin).collect()
    }

    fn check_mirrors(&self, mirrors: &[DiskMirror]) -> Result<(), ApiError> {
        let failure = |mirror: &DiskMirror| Some((mirror.label(), mirror.progress().failure?));
        mirrors.iter().find_map(failure).map_or(Ok(()), |(disk, error)| {
            let text = format!("{disk} could not be copied to the other node: {error}");
            Err(self.error(ErrorCode::HostError, &text))
        })
    }

    fn vm_that_leaves(&self) -> Result<Arc<dyn suimon_ports::Vm>, ApiError> {
        let vm = self.run.as_ref().map(|run| run.vm.clone());
        vm.ok_or_else(|| self.error(ErrorCode::Conflict, "the VM is not running any more"))
    }

    fn look_at_memory(
        &mut self,
        outgoing: &mut OutgoingMigration,
        order: Box<MigrationParams>,
        mirrors: Vec<DiskMirror>,
    ) -> Result<(Stage, Duration), ApiError> {
        let vm = self.vm_that_leaves()?;
        let status = vm.migration_status().map_err(|error| self.api_error(&error))?;
        outgoing.copied.memory = (status.bytes_sent, status.remaining_bytes);
        // QEMU on the destination would not repeat queued writes.
        match &status.phase {
            MigrationTransferPhase::Failed(_) => {}
            MigrationTransferPhase::Copying | MigrationTransferPhase::None => {
                self.check_no_known_queued_writes()?;
            }
            _ => self.check_no_queued_writes()?,
        }
        match status.phase {
            MigrationTransferPhase::Copying | MigrationTransferPhase::None => {
                Ok((Stage::CopyingMemory(order, mirrors), POLL_INTERVAL))
            }
            MigrationTransferPhase::WaitingForFinish
            | MigrationTransferPhase::Finishing
            | MigrationTransferPhase::Done => {
                if !self.entry.begin_switchover() {
                    return Err(self.error(ErrorCode::Conflict, "the VM was killed"));
                }
                let until = Instant::now() + FINAL_COPY_TIMEOUT;
                for mirror in &mirrors {
                    mirror.finish(until)?;
                }
                outgoing.note_disks(&mirrors);
                vm.execute(&VmCommand::FinishMigration).map_err(|error| self.api_error(&error))?;
                Ok((
                    Stage::Switchover(Instant::now() + SWITCHOVER_TIMEOUT),
                    SWITCHOVER_POLL_INTERVAL,
                ))
            }
            MigrationTransferPhase::Failed(reason) => Err(self.not_sent(&reason)),
        }
    }

    fn not_sent(&self, reason: &str) -> ApiError {
        let text = format!(
            "the VM's memory could not be sent: {reason}; the VM's log on the other node may have \
             the cause"
        );
        self.error(ErrorCode::HostError, &text)
    }

    fn poll_remaining_memory(
        &mut self,
        outgoing: &mut OutgoingMigration,
        until: Instant,
    ) -> Result<(Stage, Duration), ApiError> {
        let status =
            self.vm_that_leaves()?.migration_status().map_err(|error| self.api_error(&error))?;
        outgoing.copied.memory = (status.bytes_sent, status.remaining_bytes);
        match status.phase {
            MigrationTransferPhase::Done => {}
            MigrationTransferPhase::Failed(reason) => return Err(self.not_sent(&reason)),
            _ if Instant::now() >= until => {
                let text = format!(
                    "the other node has sent nothing for {} s",
                    SWITCHOVER_TIMEOUT.as_secs()
                );
                return Err(self.not_sent(&text));
            }
            _ => return Ok((Stage::Switchover(until), SWITCHOVER_POLL_INTERVAL)),
        }
        // QEMU and the mirrors have stopped accessing the disks, and completed writes are durable.
        outgoing.handed_over_disks.iter().try_for_each(OutgoingDisk::release)?;
        // From here on, only the destination knows which node owns the VM.
        let handed_over = StoredMigrationState::HandedOver(outgoing.migration.clone());
        if !self.save_migration_record(Some(handed_over)) {
            self.migration_record =
                Some(StoredMigrationState::Outgoing(outgoing.migration.clone()));
            let text = "the state directory cannot be written, and after a restart the daemon could \
                        not determine the node of the VM; `suimon host show` shows the reason";
            return Err(self.error(ErrorCode::HostError, text));
        }
        Ok((Stage::HandedOver { is_reported: false }, Duration::ZERO))
    }

    /// Publishes the progress of the outgoing migration to its operation and the VM's status.
    pub(in crate::vms) fn publish_outgoing_progress(&self) {
        let Some(outgoing) = &self.outgoing else { return };
        let view = outgoing.view();
        if let Some(operation) = &outgoing.operation {
            let total = view.disk_bytes_copied + view.disk_bytes_remaining;
            let memory = view.memory_bytes_copied + view.memory_bytes_remaining;
            let (done_bytes, total_bytes) = match view.phase {
                MigrationPhase::CopyingDisks => (view.disk_bytes_copied, total),
                _ => (view.memory_bytes_copied, memory),
            };
            let part =
                u64::try_from(PARTS).unwrap_or(1).saturating_mul(done_bytes) / total_bytes.max(1);
            let part = usize::try_from(part).unwrap_or(PARTS).min(PARTS);
            operation.report_progress(part, PARTS, &texts::phase_text(&view));
        }
        self.entry.view().migration = Some(view);
    }

    /// Sets and records the migration state, with the run of a VM that is not adopted yet. Returns
    /// true if the state store accepted the record.
    pub(in crate::vms) fn save_migration_record(
        &mut self,
        stored_move: Option<StoredMigrationState>,
    ) -> bool {
        self.migration_record = stored_move;
        let run = self.run.as_ref().map(|run| &run.stored);
        let saved = self.save(run.or(self.unresponsive.as_ref().map(|lost| &lost.stored)));
        if let Some(run) = &mut self.run {
            run.is_recorded = saved;
        }
        saved
    }
}
