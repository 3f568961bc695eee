//! Creates device errors and queue faults, with advice, from error numbers of the kernel.

use std::io;

use rustix::io::Errno;
use suimon_ports::{DeviceError, DeviceErrorKind, FaultKind, QueueFault};

/// Creates a device error of this kind.
pub(crate) fn device_error(
    kind: DeviceErrorKind,
    field: &'static str,
    detail: impl Into<String>,
) -> DeviceError {
    DeviceError { kind, field, detail: detail.into() }
}

/// Creates a device error from a failed system call during `operation`.
pub(crate) fn host_error(field: &'static str, operation: &str, cause: &io::Error) -> DeviceError {
    let errno = cause.raw_os_error().map(Errno::from_raw_os_error);
    let (kind, advice) = match errno {
        Some(Errno::PERM | Errno::ACCESS) => (
            DeviceErrorKind::Denied,
            "; run suimond as root or give it CAP_NET_ADMIN and CAP_NET_RAW",
        ),
        Some(Errno::BUSY) => (
            DeviceErrorKind::Busy,
            "; another process uses it: stop that process or choose another device",
        ),
        Some(Errno::NODEV | Errno::NOENT | Errno::NXIO) => {
            (DeviceErrorKind::Missing, "; check that it still exists")
        }
        Some(Errno::MFILE | Errno::NFILE) => {
            (DeviceErrorKind::Host, "; raise the limit of open files (LimitNOFILE)")
        }
        Some(Errno::OPNOTSUPP | Errno::NOSYS) => {
            (DeviceErrorKind::Unsupported, "; this kernel or device does not support it")
        }
        _ => (DeviceErrorKind::Host, ""),
    };
    device_error(kind, field, format!("{operation}: {cause}{advice}"))
}

/// Creates the fault of a queue whose device was removed. `errno` is the error of the call that
/// detected it.
pub(crate) fn device_removed_fault(device: &str, errno: Errno) -> QueueFault {
    QueueFault {
        kind: FaultKind::Disconnected,
        detail: format!("device {device} does not exist any more: {errno}"),
    }
}

/// Creates the fault of a queue on which the system call for `doing` failed.
pub(crate) fn call_failed_fault(device: &str, doing: &str, errno: Errno) -> QueueFault {
    QueueFault {
        kind: FaultKind::SystemCallFailed,
        detail: format!("{doing} device {device}: {errno}"),
    }
}
