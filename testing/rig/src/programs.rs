//! Where the programs under test are.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, bail};

/// The program `name` of this workspace: from the folder in `SUIMON_BIN_DIR`, or
/// beside the running program, which cargo puts next to it or one folder below.
///
/// # Errors
/// It was not built.
pub fn program(name: &str) -> Result<String> {
    let mut folders: Vec<PathBuf> =
        env::var_os("SUIMON_BIN_DIR").map(PathBuf::from).into_iter().collect();
    let here = env::current_exe()?;
    folders.extend(here.ancestors().skip(1).take(2).map(PathBuf::from));
    for folder in &folders {
        let path = folder.join(name);
        if path.is_file() {
            return Ok(path.to_string_lossy().into_owned());
        }
    }
    bail!("{name} is not built: run `cargo build -p {name}` in the profile of this program")
}
