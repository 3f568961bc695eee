//! Memory size for guests under TCG, chosen such that QEMU records every write during a migration.
//!
//! QEMU before 9.0 reads and clears the dirty bitmap in words of 64 pages
//! (`cpu_physical_memory_sync_dirty_bitmap`) and leaves the pages writable in the TLBs of its
//! virtual CPUs. Later writes to these pages are not recorded. The migrated VM then has stale
//! memory: its kernel panics, or its data is corrupt. QEMU commit 03bfc2188f06 ("physmem: Fix
//! migration dirty bitmap coherency with TCG memory access") corrects this. If the size of a memory
//! block is not a multiple of 64 pages, QEMU processes the bitmap page by page and resets the TLB
//! entries of each page. Guests under TCG therefore get 8 KiB more than configured.

use suimon_ports::{VmAccelerator, VmError, VmErrorKind, VmSpec};
use suimon_qmp::Version;

use crate::devices::QemuProperties;

/// Number of bytes of memory that one word of QEMU's dirty bitmap represents: 64 pages of 4 KiB.
const WORD_BYTES: u64 = 64 * 4096;
/// Number of bytes that a guest under TCG gets in addition to the configured memory: the unit to
/// which `-m` is rounded up.
const EXTRA_BYTES: u64 = 8192;
/// First version of QEMU that records all writes while it copies the memory of a guest under TCG.
const CORRECTED_IN: Version = Version::new(9, 0, 0);

/// Returns the memory size in bytes that a VM is started with. Both nodes of a migration compute
/// the same value. Guests with huge pages get the configured size, because huge pages cannot be
/// divided.
pub(crate) fn memory_bytes(spec: &VmSpec, accelerator: VmAccelerator) -> u64 {
    match accelerator {
        VmAccelerator::Tcg if !spec.huge_pages => spec.memory_bytes.saturating_add(EXTRA_BYTES),
        VmAccelerator::Tcg | VmAccelerator::Kvm => spec.memory_bytes,
    }
}

/// Checks that QEMU records all writes of a guest with `bytes` bytes of memory during a migration.
///
/// # Errors
/// Writes may be lost: the guest has huge pages, or was started before its memory got the extra
/// bytes.
pub(crate) fn check_dirty_tracking(machine: QemuProperties, bytes: u64) -> Result<(), VmError> {
    let is_recorded = machine.accelerator == VmAccelerator::Kvm
        || machine.version >= CORRECTED_IN
        || bytes % WORD_BYTES != 0;
    if is_recorded {
        return Ok(());
    }
    let text = format!(
        "without KVM, QEMU {} may lose writes of this guest while it copies the guest's memory; \
         set huge_pages = false if it is true, then stop and start the VM; or install QEMU \
         {CORRECTED_IN} or later",
        machine.version
    );
    Err(VmError::new(VmErrorKind::Refused, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(version: Version, accelerator: VmAccelerator) -> QemuProperties {
        QemuProperties { version, accelerator }
    }

    #[test]
    fn only_a_qemu_that_misses_writes_refuses_to_let_a_guest_go() {
        let (old, corrected) = (Version::new(8, 2, 10), CORRECTED_IN);
        let mib = 1 << 20;
        let refused =
            check_dirty_tracking(machine(old, VmAccelerator::Tcg), 512 * mib).unwrap_err();
        assert_eq!(refused.kind, VmErrorKind::Refused);
        assert!(refused.text.contains("QEMU 8.2.10 may lose"), "{refused}");
        assert!(refused.text.contains("QEMU 9.0.0 or later"), "{refused}");
        let extra = 512 * mib + EXTRA_BYTES;
        check_dirty_tracking(machine(old, VmAccelerator::Tcg), extra).unwrap();
        check_dirty_tracking(machine(old, VmAccelerator::Kvm), 512 * mib).unwrap();
        check_dirty_tracking(machine(corrected, VmAccelerator::Tcg), 512 * mib).unwrap();
    }
}
