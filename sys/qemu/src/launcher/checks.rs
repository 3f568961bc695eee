//! Checks whether this host can start a VM.

use std::fs;
use std::path::Path;

use suimon_ports::{VmBoot, VmError, VmErrorKind, VmSpec};

use super::launcher_user::{LauncherUser, check_user, open_as};

const KIB: u64 = 1 << 10;

fn host(text: String) -> VmError {
    VmError::new(VmErrorKind::Host, text)
}

/// Checks that the VM's user is valid and may read its files, and that the host has enough memory
/// for it.
pub(crate) fn check(spec: &VmSpec, rights: LauncherUser) -> Result<(), VmError> {
    check_user(spec.uid, rights)?;
    check_files(spec, rights)?;
    let memory = fs::read_to_string("/proc/meminfo")
        .map_err(|error| host(format!("/proc/meminfo cannot be read: {error}")))?;
    check_memory(spec, &memory)
}

fn check_files(spec: &VmSpec, rights: LauncherUser) -> Result<(), VmError> {
    let mut files: Vec<(&str, &Path)> = Vec::new();
    match &spec.boot {
        VmBoot::Bios => {}
        VmBoot::Uefi { code, variables } => {
            files.extend([("firmware", code.as_path()), ("UEFI variable store", variables)]);
        }
        VmBoot::Direct { kernel, initrd, .. } => {
            files.push(("kernel", kernel));
            files.extend(initrd.as_deref().map(|initrd| ("initramfs", initrd)));
        }
    }
    files.extend(spec.cdrom.as_deref().map(|cdrom| ("CD", cdrom)));
    for (kind, path) in files {
        open_as(spec.uid, rights, path).map_err(|error| {
            let (path, user) = (path.display(), spec.uid);
            host(format!("the {kind} {path} cannot be read by the VM's user {user}: {error}"))
        })?;
    }
    Ok(())
}

fn check_memory(spec: &VmSpec, meminfo: &str) -> Result<(), VmError> {
    let number = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let memory_bytes = spec.memory_bytes;
    let mib = |bytes: u64| bytes >> 20;
    if !spec.huge_pages {
        let free = number("MemAvailable").unwrap_or(0).saturating_mul(KIB);
        if memory_bytes > free {
            let (requested_mib, free) = (mib(memory_bytes), mib(free));
            let text = format!(
                "the VM needs {requested_mib} MiB of memory, and the host has {free} MiB available"
            );
            return Err(host(text));
        }
        return Ok(());
    }
    let page = number("Hugepagesize").unwrap_or(0).saturating_mul(KIB);
    let pages = number("HugePages_Free").unwrap_or(0);
    let available = pages.saturating_sub(number("HugePages_Rsvd").unwrap_or(0));
    if page == 0 || memory_bytes % page != 0 {
        return Err(host(format!(
            "memory_bytes {memory_bytes} is not a multiple of the huge page size {page}"
        )));
    }
    if memory_bytes / page > available {
        let required = memory_bytes / page;
        let text = format!(
            "the VM needs {required} huge pages of {} KiB, and {available} are free; raise \
             vm.nr_hugepages",
            page / KIB
        );
        return Err(host(text));
    }
    Ok(())
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
