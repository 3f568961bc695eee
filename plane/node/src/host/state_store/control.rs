//! Reports of the state of the store.

use std::time::{Duration, Instant};

use suimon_contract::{ApiError, EventKind, StateStoreStatus};

use crate::control::Controller;
use crate::events::Draft;
use crate::shared::Shared;

/// Interval of attempts to write what is in memory only.
const WRITE_AGAIN: Duration = Duration::from_secs(5);

impl Shared {
    /// Returns whether changes of desired state can be stored.
    pub(crate) fn state_store_status(&self) -> StateStoreStatus {
        let failure = self.store.failure();
        StateStoreStatus { writable: failure.is_none(), reason: failure.map(|error| error.detail) }
    }

    pub(crate) fn report_host_file_not_applied(&self, file: &str, errors: &[ApiError]) {
        let reasons: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
        let text = format!(
            "{file} differs from the stored configuration and was not applied: {}. Make the state \
             directory writable, then reload the daemon (SIGHUP or `systemctl reload suimond`).",
            reasons.join("; ")
        );
        self.events.append(vec![Draft::new(EventKind::HostFileNotApplied, "host", text)]);
    }
}

impl Controller {
    /// Reports a change of the store's state. While it cannot be written, tries to write events and
    /// deferred changes again.
    pub(crate) fn watch_state_store(&mut self) {
        let mut failure = self.shared.store.failure();
        let is_due = self.state_store.tried_at.is_none_or(|at| at.elapsed() >= WRITE_AGAIN);
        if failure.is_some() && is_due {
            self.state_store.tried_at = Some(Instant::now());
            // An error is the store's next failure.
            let _ = self.shared.store.write_deferred();
            self.shared.events.write_unsaved();
            failure = self.shared.store.failure();
        }
        if failure.is_some() == self.state_store.is_reported {
            return;
        }
        self.state_store.is_reported = failure.is_some();
        self.drafts.push(match failure {
            Some(error) => {
                let text = format!(
                    "The state directory cannot be written: {}. The host works as configured. \
                     Until the directory can be written, changes of the configuration are rejected, \
                     VMs are not started, and new events are kept in memory only. Free space, \
                     remount the file system writable, or correct its permissions.",
                    error.detail
                );
                Draft::new(EventKind::StateNotWritable, "host", text)
            }
            None => {
                let text = "The state directory can be written again: changes of the \
                            configuration are accepted, VMs can be started, and events that were \
                            kept in memory are stored.";
                Draft::new(EventKind::StateWritable, "host", text)
            }
        });
    }
}
