//! Detection of the QEMU program and its version.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use suimon_ports::{VmError, VmErrorKind};
use suimon_qmp::Version;

/// Paths at which packages install QEMU.
const PLACES: [&str; 3] =
    ["/usr/bin/qemu-system-x86_64", "/usr/local/bin/qemu-system-x86_64", "/usr/libexec/qemu-kvm"];
/// Oldest supported version of QEMU: the first one with NICs over stream sockets, and devices in
/// JSON syntax.
const OLDEST: Version = Version::new(7, 2, 0);

/// Path and version of the QEMU program, determined at the first use.
#[derive(Debug)]
pub(crate) struct QemuProgram {
    configured: Option<PathBuf>,
    detected: OnceLock<(PathBuf, Version)>,
}

fn host(text: String) -> VmError {
    VmError::new(VmErrorKind::Host, text)
}

impl QemuProgram {
    pub(crate) fn new(named: Option<PathBuf>) -> Self {
        Self { configured: named, detected: OnceLock::new() }
    }

    /// Returns path and version of QEMU. Searches again if an earlier call failed.
    ///
    /// # Errors
    /// QEMU is not installed, cannot be executed, or is too old.
    pub(crate) fn find(&self) -> Result<&(PathBuf, Version), VmError> {
        if let Some(path) = self.detected.get() {
            return Ok(path);
        }
        let path = match &self.configured {
            Some(path) => path.clone(),
            None => {
                PLACES.iter().map(PathBuf::from).find(|path| path.exists()).ok_or_else(|| {
                    let paths = PLACES.join(", ");
                    host(format!(
                        "QEMU is not installed ({paths}); install the package qemu-system-x86"
                    ))
                })?
            }
        };
        let version = version_of(&path)?;
        Ok(self.detected.get_or_init(|| (path, version)))
    }
}

fn version_of(path: &Path) -> Result<Version, VmError> {
    let display = path.display();
    let mut command = Command::new(path);
    command.arg("--version").env_clear().stdin(Stdio::null());
    let output = command.output().map_err(|error| {
        host(format!("QEMU cannot be started: {display}: {error}; install qemu-system-x86"))
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = Version::parse_program_output(&text)
        .ok_or_else(|| host(format!("{display} reports no version of QEMU")))?;
    if version < OLDEST {
        return Err(host(format!(
            "{display} is QEMU {version}; QEMU {OLDEST} or later is required"
        )));
    }
    Ok(version)
}
