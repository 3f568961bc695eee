//! Draining of nodes: VMs migrate to other nodes, and no VM is accepted.
//!
//! The drained state is an administrative state, not configuration: it is stored beside the desired
//! state, and no host file changes it. Once it is committed, incoming migrations are rejected. A
//! thread then migrates one VM after another ([`evacuation`]). After a restart, the daemon resumes
//! an unfinished drain.

mod evacuation;
mod following;
mod requests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};
use suimon_contract::DrainRequest;
use suimon_ports::{StateStore, StateStoreError};

use crate::state::decode;

const HOST: &str = "host";
const DRAIN: &str = "drain";

/// Record of the drained state in the state store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredDrain {
    request: DrainRequest,
    since_unix_ms: u64,
    /// True if all VMs that were running have been migrated. The next daemon then does not resume
    /// the drain.
    is_empty: bool,
}

/// Drained state of the host and the thread that migrates its VMs.
#[derive(Default)]
pub(crate) struct Drain {
    state: Mutex<State>,
    /// True once the daemon is stopping.
    stops: AtomicBool,
}

#[derive(Default)]
struct State {
    stored: Option<StoredDrain>,
    operation: Option<u64>,
    thread: Option<JoinHandle<()>>,
}

impl Drain {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stops(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }
}

fn load(store: &dyn StateStore) -> Result<Option<StoredDrain>, StateStoreError> {
    let value = store.read(HOST, DRAIN)?;
    value.map(|value| decode(HOST, DRAIN, &value)).transpose()
}

#[cfg(test)]
mod tests;
