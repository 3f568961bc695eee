//! What the daemon and the launcher say to each other: one message of JSON each way, on a socket
//! that keeps messages apart.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_ports::{VmAccelerator, VmError, VmErrorKind, VmIdentity, VmSpec};

/// Raised when the two no longer understand each other; a launcher that VMs keep may be older
/// than its daemon.
pub(crate) const PROTOCOL: u32 = 1;
/// Bytes of the longest message; a VM with all its devices takes a tenth.
pub(crate) const MESSAGE_BYTES_MAX: usize = 128 << 10;

/// What the daemon sends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) protocol: u32,
    pub(crate) request: Request,
}

/// What it wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Whether a VM could be started.
    Probe(Box<VmSpec>),
    /// A folder for a VM of this user.
    Prepare { folder: PathBuf, user: u32 },
    /// Start it.
    Start(Box<VmSpec>),
    /// Whether its process is there.
    Find(VmIdentity),
    /// End its process, and wait for that.
    Kill(VmIdentity),
    /// Answered when its process has ended. Meanwhile any message has it ended.
    Watch(VmIdentity),
    /// Remove the folder.
    Remove { folder: PathBuf },
    /// VMs whose processes are there.
    List,
    /// Make a virtual function, by its PCI address, ready for this VM.
    GiveVf { identity: VmIdentity, vf: String, memory_bytes: u64 },
    /// Take it back.
    TakeVf { vf: String },
}

/// What comes of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Done,
    Started(Started),
    Ended(Ended),
    Vms(Vec<VmIdentity>),
    Refused { kind: VmErrorKind, text: String },
}

/// A process that was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) identity: VmIdentity,
    pub(crate) accelerator: VmAccelerator,
    /// What is not as it should be, and does not keep the VM from running.
    pub(crate) remarks: Vec<String>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    /// Whether it ended with status 0; nothing if an earlier launcher had started it.
    pub(crate) is_success: Option<bool>,
    /// How, in words that begin with QEMU's name.
    pub(crate) status: String,
    /// The last lines of its log.
    pub(crate) log: String,
}

impl Ended {
    /// All of it in one sentence.
    pub(crate) fn text(&self) -> String {
        if self.log.is_empty() {
            return self.status.clone();
        }
        format!("{}; its log ends with: {}", self.status, self.log)
    }
}

impl From<VmError> for Answer {
    fn from(error: VmError) -> Self {
        Self::Refused { kind: error.kind, text: error.text }
    }
}
