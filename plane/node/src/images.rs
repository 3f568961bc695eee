//! Image files of stores. Requests: describe, check, repair, and set the parent.
//!
//! A request runs in the caller's thread and blocks while the store does not respond. Image files
//! of disks in service are locked, so that these requests fail. So do requests about files of disks
//! whose VM migrates.

mod requests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use suimon_contract::{ApiError, ErrorCode};

/// Maximum number of concurrent requests per store. Each occupies a thread of the caller that may
/// block on the store.
const REQUESTS_MAX: usize = 4;

/// Number of requests in progress by path of the store, each at most [`REQUESTS_MAX`].
#[derive(Default)]
pub(crate) struct ImageRequests(Mutex<BTreeMap<PathBuf, usize>>);

/// Request in progress; dropping it releases its slot.
struct Running<'a> {
    requests: &'a ImageRequests,
    store: PathBuf,
}

impl ImageRequests {
    fn begin(&self, store: &Path) -> Result<Running<'_>, ApiError> {
        let mut requests_by_store = self.lock();
        let running = requests_by_store.entry(store.to_owned()).or_default();
        if *running >= REQUESTS_MAX {
            let text = format!(
                "{REQUESTS_MAX} requests concerning images of this store are in progress, the most at one time; retry later"
            );
            return Err(ApiError::new(ErrorCode::InUse, text));
        }
        *running += 1;
        Ok(Running { requests: self, store: store.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut requests_by_store = self.requests.lock();
        let Some(running) = requests_by_store.get_mut(&self.store) else { return };
        *running -= 1;
        if *running == 0 {
            requests_by_store.remove(&self.store);
        }
    }
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
