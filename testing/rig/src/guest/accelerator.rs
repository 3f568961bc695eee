//! Execution of guests by hardware or by translation.

/// Execution of the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// Hardware virtualization.
    Kvm,
    /// Translation by QEMU.
    Tcg,
}

impl Accelerator {
    /// Returns the number of MSI-X vectors of a device that needs this many.
    ///
    /// Without KVM, QEMU 7.2 crashes as soon as the guest masks a vector of a vhost-user device. An
    /// interrupt line is used instead.
    pub(crate) fn vectors(self, needed: u16) -> u16 {
        match self {
            Self::Kvm => needed,
            Self::Tcg => 0,
        }
    }
}
