//! Restoration of power settings on behalf of a killed daemon.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use suimon_node::restore_power;
use suimon_ports::{PowerHost, StateStore};
use suimon_power_files::PowerFiles;
use suimon_store::FileStore;

use crate::cli::Arguments;
use crate::vm_factory::boot_id;

/// Restores the settings recorded as changed in the state directory, and prints the result.
///
/// # Errors
/// A daemon is running, the state directory cannot be read, or a setting could not be restored.
pub(crate) fn restore(arguments: &Arguments) -> Result<()> {
    let state_dir = &arguments.state_dir;
    if !state_dir.exists() {
        println!("{} does not exist, so no CPU setting was changed", state_dir.display());
        return Ok(());
    }
    let store = FileStore::open(state_dir)
        .with_context(|| format!("--state-dir {}", state_dir.display()))
        .context("no CPU setting was restored; if a daemon runs with this state directory, it restores them when it ends")?;
    let store: Arc<dyn StateStore> = Arc::new(store);
    let host: Arc<dyn PowerHost> = Arc::new(PowerFiles::new(&arguments.sysfs));
    let restoration = restore_power(&store, &host, &boot_id())?;
    println!("CPU settings restored: {}", restoration.restored_count);
    for unchanged in &restoration.externally_changed {
        println!("left unchanged: {unchanged}");
    }
    if !restoration.failed.is_empty() {
        bail!(
            "CPU settings that could not be restored; the next daemon tries again: {}",
            restoration.failed.join("; ")
        );
    }
    Ok(())
}
