//! Operations on a disk's file, and the checks whether they can begin.

mod checks;
mod request;

use suimon_contract::{ApiError, ErrorCode};

pub(super) use self::checks::{DiskUsers, check_idle, has_stopped_vm, unknown_clients_error};
pub use self::request::DiskFileJob;
use super::entry::{CurrentJob, DiskEntry};

pub(super) fn conflict_error(entry: &DiskEntry, work: &CurrentJob) -> ApiError {
    let CurrentJob { operation_id: operation, verb } = work;
    let text = format!(
        "operation {operation} (disk {verb}) is in progress on this disk; wait until it has \
         ended, or cancel it with `suimon operation cancel {operation}`"
    );
    ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label())
}
