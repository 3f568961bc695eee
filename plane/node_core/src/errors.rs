//! API errors that several resource kinds return.

use suimon_contract::{ApiError, ErrorCode, ResourceKind};
use suimon_ports::{DeviceErrorKind, StateStoreError};

/// Converts the kind of a device error into an API error code.
pub const fn error_code(kind: DeviceErrorKind) -> ErrorCode {
    match kind {
        DeviceErrorKind::Missing => ErrorCode::DeviceMissing,
        DeviceErrorKind::Busy => ErrorCode::DeviceBusy,
        DeviceErrorKind::Denied => ErrorCode::PermissionDenied,
        DeviceErrorKind::Unsupported => ErrorCode::Unsupported,
        DeviceErrorKind::Host => ErrorCode::HostError,
    }
}

/// Returns the first of several errors, with "(and N more)" appended to its message. Returns an
/// internal error if `errors` is empty.
pub fn summarize(mut errors: Vec<ApiError>) -> ApiError {
    let additional = errors.len().saturating_sub(1);
    if errors.is_empty() {
        return ApiError::new(ErrorCode::Internal, "rejected without a reason");
    }
    let mut first = errors.swap_remove(0);
    if additional > 0 {
        first.message = format!("{} (and {additional} more)", first.message);
    }
    first
}

/// Converts an error of the state store into an API error with code [`ErrorCode::HostError`].
pub fn store_error(error: &StateStoreError) -> ApiError {
    ApiError::new(ErrorCode::HostError, error.to_string())
}

/// Returns the error for a resource that does not exist.
pub fn not_found(kind: ResourceKind, name: impl std::fmt::Display) -> ApiError {
    let command = kind.command_words();
    let text = format!(
        "there is no {command} of this name; `suimon {command} list` lists the existing ones"
    );
    ApiError::new(ErrorCode::NotFound, text).with_resource(format!("{}/{name}", kind.noun()))
}

/// Returns the error of a cluster request on a host without a cluster.
pub fn no_cluster() -> ApiError {
    let text = "this host is in no cluster; join one with `suimon cluster join`, or create one \
                with `suimon cluster init`";
    ApiError::new(ErrorCode::NotFound, text).with_resource("cluster")
}
