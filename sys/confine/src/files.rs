//! Restriction of access to files, ports and signals (`landlock(7)`), as far as the kernel supports
//! it.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    make_bitflags,
};

use crate::report::LandlockEffect;

/// Newest version of the Landlock interface that is used and tested.
const NEWEST: ABI = ABI::V7;

/// File rights that the whole process gives up: executing files, creating device nodes, and writing
/// to files of `/sys` and `/proc`.
const PROCESS_RIGHTS: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{Execute | MakeChar | MakeBlock | WriteFile});
/// Mount points of sysfs, through which devices are configured, and of procfs, through which memory
/// and settings of processes and the kernel are written (`/proc/self/mem`, `/proc/sys`).
const KERNEL_FILES: [&str; 2] = ["/sys", "/proc"];

/// Prevents the calling thread, and threads that it starts, from executing files, creating device
/// nodes, and writing to files of `/proc` and to files of `/sys` other than `sysfs_files`.
///
/// # Errors
/// The kernel failed for a reason other than missing support.
pub(crate) fn restrict_process_files(
    sysfs_files: &[PathBuf],
) -> Result<LandlockEffect, RulesetError> {
    let mut ruleset = Ruleset::default().handle_access(PROCESS_RIGHTS)?.create()?;
    // Rules can only permit, so every other top-level folder is listed.
    let folders = std::fs::read_dir("/").into_iter().flatten().flatten();
    let is_kernels = |path: &PathBuf| KERNEL_FILES.iter().any(|name| path == Path::new(name));
    let other_paths = folders.map(|entry| entry.path()).filter(|path| !is_kernels(path));
    for path in other_paths.chain(sysfs_files.iter().cloned()) {
        // A folder that no longer exists needs no rule.
        if let Ok(opened) = PathFd::new(&path) {
            ruleset = ruleset.add_rule(PathBeneath::new(opened, AccessFs::WriteFile))?;
        }
    }
    enforce(ruleset)
}

/// Prevents the calling thread from opening files, connecting to TCP ports and abstract Unix
/// sockets, and signalling other processes.
///
/// # Errors
/// The kernel failed for a reason other than missing support.
pub(crate) fn restrict_thread_files() -> Result<LandlockEffect, RulesetError> {
    restrict(
        Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?,
    )
}

fn restrict(ruleset: Ruleset) -> Result<LandlockEffect, RulesetError> {
    enforce(ruleset.create()?)
}

fn enforce(ruleset: RulesetCreated) -> Result<LandlockEffect, RulesetError> {
    let status = ruleset.restrict_self()?;
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.unwrap_or(effective_abi as i32).unsigned_abs()
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    };
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => LandlockEffect::Full { abi },
        RulesetStatus::PartiallyEnforced => LandlockEffect::Partial { abi },
        RulesetStatus::NotEnforced => LandlockEffect::Off,
    })
}
