//! Stores that cannot be read.

use std::path::Path;

use suimon_contract::{EventKind, StoreConfig};

use crate::control::Controller;
use crate::disks::Disks;
use crate::events::EventDraft;

impl Disks {
    /// Returns whether a store can be read according to the last query, or the reason why not;
    /// `None` if there was no query yet.
    fn store_check(&self, path: &Path) -> Option<Result<(), String>> {
        match self.threads.check_responds(path) {
            Err(silent) => Some(Err(silent.message)),
            Ok(()) => self.spaces.check(path),
        }
    }
}

impl Controller {
    /// Emits events for stores that cannot be read any more, and for those that can be read again.
    pub(super) fn report_failed_stores(&mut self, stores: &[StoreConfig]) {
        self.failed_stores.retain(|name| stores.iter().any(|store| store.name == *name));
        for store in stores {
            let Some(check) = self.shared.disks.store_check(&store.path) else { continue };
            let is_new = match &check {
                Ok(()) => self.failed_stores.remove(&store.name),
                Err(_) => self.failed_stores.insert(store.name.clone()),
            };
            if is_new {
                self.drafts.push(check_event(store, check.err()).rate_limited());
            }
        }
    }
}

/// Returns the event that a store cannot be read for a reason, or can be read again.
fn check_event(store: &StoreConfig, failure: Option<String>) -> EventDraft {
    let (name, path) = (&store.name, store.path.display());
    let draft = |kind, text| EventDraft::new(kind, format!("store/{name}"), text);
    let draft = match failure {
        None => draft(EventKind::StoreRecovered, format!("Store {name} can be read again.")),
        Some(reason) => {
            let text = format!(
                "Store {name} cannot be read: {reason}. Remove the cause; the daemon checks the store \
                 every 10 s."
            );
            draft(EventKind::StoreFailed, text).with("reason", reason)
        }
    };
    draft.with("path", path)
}
