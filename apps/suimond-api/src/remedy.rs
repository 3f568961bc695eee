//! Remedies for errors of the operating system about listeners.

use std::io::{Error, ErrorKind};

/// Returns the action to take after `error` of the TCP listener that the host file's section
/// `section` configures.
pub(crate) fn listener_error_remedy(error: &Error, section: &str) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => format!(
            "stop the process that listens there (`ss -ltnp` lists it), or change listen in \
             [{section}]"
        ),
        ErrorKind::AddrNotAvailable => {
            format!("add the address to a device of this host, or change listen in [{section}]")
        }
        ErrorKind::PermissionDenied => {
            format!("run suimond as root, or choose a port above 1023 with listen in [{section}]")
        }
        _ => format!("change listen in [{section}]"),
    }
}
