//! Locations of the programs under test.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Returns the path of the program `name` of this workspace: in the folder in `SUIMON_BIN_DIR`, or
/// in the folder of the running program or its parent.
///
/// # Errors
/// The program was not built.
pub fn program(name: &str) -> Result<String> {
    let Some(path) = built(name)? else {
        bail!("{name} is not built: run `cargo build --bin {name}` in the profile of this program");
    };
    Ok(path)
}

/// Returns the path of the example `name` of this workspace, in the folder `examples` of those that
/// [`program`] searches.
///
/// # Errors
/// The example was not built.
pub fn example(name: &str) -> Result<String> {
    let Some(path) = built(&format!("examples/{name}"))? else {
        bail!("{name} is not built: run `cargo build --example {name}` in this program's profile");
    };
    Ok(path)
}

/// Returns the path of a program of the system.
///
/// # Errors
/// The program is not installed.
pub fn system_program(name: &str) -> Result<PathBuf> {
    ["/bin", "/usr/bin", "/sbin", "/usr/sbin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.is_file())
        .with_context(|| format!("{name} is not installed; run `make setup`"))
}

fn built(name: &str) -> Result<Option<String>> {
    let mut folders: Vec<PathBuf> =
        env::var_os("SUIMON_BIN_DIR").map(PathBuf::from).into_iter().collect();
    let current_program = env::current_exe()?;
    folders.extend(current_program.ancestors().skip(1).take(2).map(PathBuf::from));
    for folder in &folders {
        let path = folder.join(name);
        if path.is_file() {
            return Ok(Some(path.to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}
