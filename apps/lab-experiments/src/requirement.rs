//! Requirements of experiments on the machine.

use std::fs;
use std::path::{Path, PathBuf};

use suimon_lab_run::LocalizedText;

/// Requirement of an experiment on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Program, with the Debian package that contains it.
    Program {
        /// Name of the executable file.
        name: &'static str,
        /// Debian package that contains the program.
        package: &'static str,
    },
    /// File of the system, with the Debian package that contains it.
    File {
        /// Absolute path of the required file.
        path: &'static str,
        /// Debian package that contains the file.
        package: &'static str,
    },
    /// Program of Suimon, or an example built beside it.
    SuimonProgram(&'static str),
    /// Free space in MiB in the folder for large files.
    FreeMib(u64),
}

/// Returns the requirement that the programs `suimond` and `suimon` exist.
pub(crate) fn daemon() -> Vec<Requirement> {
    ["suimond", "suimon"].map(Requirement::SuimonProgram).to_vec()
}

/// Returns one [`Requirement::Program`] per pair (executable file, Debian package that contains
/// it).
pub(crate) fn programs(programs: &[(&'static str, &'static str)]) -> Vec<Requirement> {
    let requirement = |&(name, package): &(_, _)| Requirement::Program { name, package };
    programs.iter().map(requirement).collect()
}

impl Requirement {
    /// Returns a text about the missing item and how to obtain it; `None` if the requirement is
    /// met. `folder` is the folder for large files.
    pub fn missing(&self, folder: &Path) -> Option<LocalizedText> {
        match self {
            Self::Program { name, package } => {
                let exists = suimon_rig::system_program(name).is_ok();
                (!exists).then(|| missing(name, package))
            }
            Self::File { path, package } => {
                (!Path::new(path).exists()).then(|| missing(path, package))
            }
            Self::SuimonProgram(name) => {
                let path = match name.strip_prefix("examples/") {
                    Some(name) => suimon_rig::example(name),
                    None => suimon_rig::program(name),
                };
                path.err().map(|error| LocalizedText::untranslated(format!("{error:#}")))
            }
            Self::FreeMib(mib) => {
                let free = free_mib(folder)?;
                (free < *mib).then(|| {
                    let folder_text = folder.display();
                    LocalizedText::new(
                        format!(
                            "{folder_text} needs {mib} MiB of free space and has {free} MiB; name \
                             another folder with --work-folder"),
                        format!("{folder_text} に {mib} MiB 必要ですが、空きは {free} MiB です。--work-folder \
                                 で別の場所を指定してください"),
                    )
                })
            }
        }
    }

    /// Returns the Debian package that satisfies the requirement, if any.
    pub fn package(&self) -> Option<&'static str> {
        match self {
            Self::Program { package, .. } | Self::File { package, .. } => Some(package),
            Self::SuimonProgram(_) | Self::FreeMib(_) => None,
        }
    }
}

fn missing(name: &str, package: &str) -> LocalizedText {
    LocalizedText::new(
        format!("{name} is not installed; `suimon lab setup` installs {package}"),
        format!("{name} がありません。`suimon lab setup` が {package} を入れます"),
    )
}

/// Returns the free space for unprivileged users in MiB; `None` if it cannot be determined.
pub fn free_mib(folder: &Path) -> Option<u64> {
    let mut existing: PathBuf = folder.to_owned();
    // For a folder that does not exist yet, the nearest existing parent is examined.
    while fs::metadata(&existing).is_err() {
        if !existing.pop() {
            return None;
        }
    }
    let status = rustix::fs::statvfs(&existing).ok()?;
    Some(status.f_bavail.saturating_mul(status.f_frsize) >> 20)
}
