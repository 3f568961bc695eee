//! Errors of disks, image files and stores as API errors.

use suimon_contract::{ApiError, ErrorCode};
use suimon_image_files::{DiskError, DiskFault};
use suimon_ports::{StoreFault, StoreFileError};

/// Reason why a disk was not opened.
pub(crate) enum OpenError {
    /// The store has not responded yet. The disk is opened when it does.
    Pending,
    /// The attempt has failed with this error.
    Failed(ApiError),
}

/// Converts an error about the disk `label`.
pub(crate) fn disk_error(label: &str, error: &DiskError) -> ApiError {
    let code = match error.fault.as_ref() {
        DiskFault::Store(fault) => fault_code(fault),
        DiskFault::InvalidPlan { .. }
        | DiskFault::PlanMismatch { .. }
        | DiskFault::BackupMismatch { .. } => ErrorCode::InvalidValue,
        _ => ErrorCode::HostError,
    };
    ApiError::new(code, error.to_string()).with_resource(label)
}

/// Converts an error about the store of the object `label`.
pub(crate) fn store_file_error(label: &str, error: &StoreFileError) -> ApiError {
    ApiError::new(fault_code(&error.fault), error.to_string())
        .with_resource(label)
        .with_field("store")
}

pub(in crate::disks) const fn fault_code(fault: &StoreFault) -> ErrorCode {
    match fault {
        StoreFault::Missing => ErrorCode::DeviceMissing,
        StoreFault::InUse { .. } => ErrorCode::DeviceBusy,
        StoreFault::Unsupported { .. } => ErrorCode::Unsupported,
        _ => ErrorCode::HostError,
    }
}
