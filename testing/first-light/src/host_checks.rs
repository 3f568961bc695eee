//! Checks of the host before anything is created. Each error is one sentence with a remedy.

use std::fs::File;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use suimon_rig::system_program;

const TUN: &str = "/dev/net/tun";
/// Space in MiB for disks, the VM's initramfs and logs in the folder for temporary files.
const SPACE_MIB: u64 = 1024;
/// Programs of the system that the demonstration uses.
const PROGRAMS: &[&str] = &[
    "busybox",
    "curl",
    "depmod",
    "ethtool",
    "fio",
    "ip",
    "iperf3",
    "lsblk",
    "lspci",
    "nginx",
    "qemu-system-x86_64",
    "ss",
    "sysctl",
    "xz",
];

/// Checks the user, `/dev/net/tun`, the installed programs and the space in `temporary`.
///
/// # Errors
/// The demonstration cannot run on this host.
pub(crate) fn check_host(temporary: &Path) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "not root: the demonstration creates network namespaces and devices; run it as root, for \
         example with sudo"
    );
    if let Err(error) = File::options().read(true).write(true).open(TUN) {
        bail!(
            "{TUN} cannot be opened ({error}), and the guests' TAP devices need it; load the \
             module with `modprobe tun`, or start this container with --device {TUN}"
        );
    }
    for program in PROGRAMS {
        ensure!(
            system_program(program).is_ok(),
            "{program} is not installed, and the demonstration starts it; run `scripts/setup run`"
        );
    }
    let path_text = temporary.display();
    let Ok(space) = rustix::fs::statvfs(temporary) else {
        bail!("{path_text} cannot hold temporary files; set TMPDIR to a directory that exists");
    };
    let free_mib = space.f_bavail.saturating_mul(space.f_frsize) >> 20;
    ensure!(
        free_mib >= SPACE_MIB,
        "disk full: {path_text} has {free_mib} MiB free, and the demonstration needs {SPACE_MIB} \
         MiB; delete files there, or set TMPDIR to a directory with more room"
    );
    Ok(())
}
