//! Hot-pluggable devices of VMs.

/// Hot-pluggable device of a VM, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VmDevice {
    /// NIC with this name.
    Nic(String),
    /// Disk with this name.
    Disk(String),
    /// Virtual function of a NIC, by the name of the NIC.
    Vf(String),
}

impl std::fmt::Display for VmDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nic(name) => write!(f, "nic/{name}"),
            Self::Disk(name) => write!(f, "disk/{name}"),
            Self::Vf(nic) => write!(f, "VF of nic/{nic}"),
        }
    }
}
