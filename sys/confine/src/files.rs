//! Files, ports and signals (`landlock(7)`), as far as the kernel has Landlock.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    make_bitflags,
};

use crate::report::FileRule;

/// The newest interface whose restrictions were tried. What a newer kernel could
/// restrict besides is for a newer version of this crate.
const NEWEST: ABI = ABI::V7;

/// What the process gives up: running a file, making device nodes, and writing to files of
/// `/sys`.
const OF_THE_PROCESS: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{Execute | MakeChar | MakeBlock | WriteFile});
/// Where the kernel is told what it does, device by device.
const SYSFS: &str = "/sys";

/// No thread that the caller starts can run a file or make a device node, or write to a file
/// of `/sys` that is none of these.
///
/// # Errors
/// The kernel refused for another reason than lacking it.
pub(crate) fn forbid_programs(sysfs_files: &[PathBuf]) -> Result<FileRule, RulesetError> {
    let mut ruleset = Ruleset::default().handle_access(OF_THE_PROCESS)?.create()?;
    // Rules only allow, so that what is not to be written is left out.
    let folders = std::fs::read_dir("/").into_iter().flatten().flatten();
    let others = folders.map(|entry| entry.path()).filter(|path| path != Path::new(SYSFS));
    for path in others.chain(sysfs_files.iter().cloned()) {
        // What is gone by now needs no rule.
        if let Ok(opened) = PathFd::new(&path) {
            ruleset = ruleset.add_rule(PathBeneath::new(opened, AccessFs::WriteFile))?;
        }
    }
    enforce(ruleset)
}

/// The calling thread can open no file, connect to no TCP port and no abstract Unix
/// socket, and signal no other process.
///
/// # Errors
/// The kernel refused for another reason than lacking it.
pub(crate) fn forbid_all() -> Result<FileRule, RulesetError> {
    restrict(
        Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?,
    )
}

fn restrict(ruleset: Ruleset) -> Result<FileRule, RulesetError> {
    enforce(ruleset.create()?)
}

fn enforce(ruleset: RulesetCreated) -> Result<FileRule, RulesetError> {
    let status = ruleset.restrict_self()?;
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.unwrap_or(effective_abi as i32).unsigned_abs()
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    };
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => FileRule::Full { abi },
        RulesetStatus::PartiallyEnforced => FileRule::Partial { abi },
        RulesetStatus::NotEnforced => FileRule::Off,
    })
}
