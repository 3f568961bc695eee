//! Messages to the control thread.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use suimon_contract::{IncomingMigrationRequest, MeasureStoreRequest, Name};
use suimon_ports::NbdNotice;
use suimon_quantity::{QueueId, WorkerId};

use crate::device_notices::{DeviceNotices, NoticeAnnouncer};
use crate::operations::OperationHandle;
use crate::{ChangeOptions, DiskFileJob, Edit};

/// Message to the control thread.
pub(crate) enum Command {
    Change {
        operation: OperationHandle,
        edit: Box<Edit>,
        options: ChangeOptions,
    },
    MoveQueue {
        operation: OperationHandle,
        queue: QueueId,
        to: WorkerId,
    },
    /// A device has queued notices.
    DeviceNotices(Arc<DeviceNotices>),
    RunDiskFileJob {
        operation: OperationHandle,
        disk: Name,
        job: DiskFileJob,
    },
    MeasureStore {
        operation: OperationHandle,
        store: Name,
        request: MeasureStoreRequest,
    },
    /// Creates the VM of an incoming migration. `request`: its VM, NICs, disks and policies.
    CreateIncomingVm {
        operation: OperationHandle,
        request: Arc<IncomingMigrationRequest>,
    },
    /// Deletes a VM that was migrated to another node, or whose incoming migration failed, with its
    /// NICs and disks.
    DeleteMigratedVm {
        operation: OperationHandle,
        /// Operation of the migration, which this command ends; `None` if no operation is in
        /// progress.
        migration_operation: Option<OperationHandle>,
        vm: Name,
        deletes_files: bool,
    },
    /// Returns a disk to service after a migration to another node was not completed. The disk is
    /// opened, or marked as failed with the given reason.
    ReturnDiskToService {
        disk: Name,
        failure: Option<String>,
    },
    NbdNotice(NbdNotice),
    /// The host file was applied: unfinished disk jobs resume, and VMs start with the host.
    FinishStart,
    /// Effective limits of disks have changed without a change of the desired state.
    PublishLimits,
    /// Wakes the control thread, because another thread has left a result.
    Wake,
    Stop,
}

impl NoticeAnnouncer for SyncSender<Command> {
    fn announce(&self, notices: Arc<DeviceNotices>) -> bool {
        !matches!(self.try_send(Command::DeviceNotices(notices)), Err(TrySendError::Full(_)))
    }
}
