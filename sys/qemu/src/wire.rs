//! Protocol between daemon and launcher: one JSON message in each direction, on a socket that
//! preserves message boundaries.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_ports::{VmAccelerator, VmError, VmErrorKind, VmIdentity, VmSpec};

/// Protocol version, incremented by incompatible changes. A launcher kept by running VMs may be
/// older than its daemon.
pub(crate) const PROTOCOL: u32 = 1;
/// Maximum length of a message in bytes; a VM with all its devices needs a tenth.
pub(crate) const MESSAGE_BYTES_MAX: usize = 128 << 10;

/// Message of the daemon: a request, with the protocol version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) protocol: u32,
    pub(crate) request: Request,
}

/// Request of the daemon to the launcher.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Checks whether a VM could be started.
    Probe(Box<VmSpec>),
    /// Prepares a folder for a VM that runs as this user.
    Prepare { folder: PathBuf, user: u32 },
    /// Starts the QEMU process of a VM.
    Start(Box<VmSpec>),
    /// Checks whether the VM's process exists.
    Find(VmIdentity),
    /// Kills the VM's process. The reply is sent after its end.
    Kill(VmIdentity),
    /// Replies when the VM's process has ended. Until then, any further message kills the process.
    Watch(VmIdentity),
    /// Removes the folder of a VM.
    Remove { folder: PathBuf },
    /// Lists the VMs with a running process.
    List,
    /// Assigns a virtual function, given by its PCI address, to this VM. `memory_bytes`: memory of
    /// the VM, which the process may lock for DMA.
    #[serde(rename = "GiveVf")]
    AssignVf { identity: VmIdentity, vf: String, memory_bytes: u64 },
    /// Removes the virtual function `vf` from the VM `vm`, whose name is used in errors. `vm` is
    /// empty if the daemon's version does not send it.
    #[serde(rename = "TakeVf")]
    RemoveVf {
        vf: String,
        #[serde(default)]
        vm: String,
    },
}

/// Reply of the launcher to a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Done,
    Started(StartedProcess),
    Ended(ProcessEnd),
    Vms(Vec<VmIdentity>),
    Refused { kind: VmErrorKind, text: String },
}

/// Process of a VM that was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StartedProcess {
    pub(crate) identity: VmIdentity,
    pub(crate) accelerator: VmAccelerator,
    /// Problems during the start with which the VM runs nevertheless.
    pub(crate) remarks: Vec<String>,
}

/// End of a VM's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessEnd {
    /// True if the process exited with status 0; `None` if it is not known, because an earlier
    /// launcher had started the process.
    pub(crate) is_success: Option<bool>,
    /// Description of the process's end, which begins with QEMU's name.
    pub(crate) status: String,
    /// Last lines of the log of QEMU's messages.
    pub(crate) log: String,
}

impl ProcessEnd {
    /// Returns the description as one sentence.
    pub(crate) fn text(&self) -> String {
        if self.log.is_empty() {
            return self.status.clone();
        }
        format!("{}; end of its log: {}", self.status, self.log)
    }
}

impl From<VmError> for Reply {
    fn from(error: VmError) -> Self {
        Self::Refused { kind: error.kind, text: error.text }
    }
}
