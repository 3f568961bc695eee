//! Reports of the state of the store.

use std::time::{Duration, Instant};

use suimon_contract::{ApiError, EventKind, StateStoreStatus};

use crate::control::Controller;
use crate::events::EventDraft;
use crate::shared::Shared;

/// Interval of attempts to write what is in memory only.
const WRITE_AGAIN: Duration = Duration::from_secs(5);

impl Shared {
    /// Returns whether changes of desired state can be stored.
    pub(crate) fn state_store_status(&self) -> StateStoreStatus {
        let failure = self.store.failure();
        StateStoreStatus { writable: failure.is_none(), reason: failure.map(|error| error.detail) }
    }

    /// Reports that the host file was not applied at a start, and what to do.
    pub(crate) fn report_host_file_not_applied(&self, file: &str, errors: &[ApiError]) {
        let reasons: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let remedy = match self.store.failure() {
            Some(_) => "Make the state directory writable",
            None => "Correct the file",
        };
        let text = format!(
            "{file} was not applied: {}. The stored configuration is in effect. {remedy}, then \
             reload the daemon (SIGHUP or `systemctl reload suimond`).",
            reasons.join("; ").trim_end_matches('.')
        );
        self.events.append(vec![EventDraft::new(EventKind::HostFileNotApplied, "host", text)]);
    }

    /// Reports that a TCP listener cannot be used.
    pub(crate) fn report_listener_failed(&self, error: &ApiError) {
        let text = format!(
            "{error}. The daemon works without this listener, and tries again every 5 s to listen."
        );
        self.events.append(vec![EventDraft::new(EventKind::ListenerFailed, "host", text)]);
    }
}

impl Controller {
    /// Reports a change of the store's state. While it cannot be written, tries to write events and
    /// deferred changes again.
    pub(crate) fn watch_state_store(&mut self) {
        let mut failure = self.shared.store.failure();
        let is_due = self
            .state_store_watch
            .tried_at
            .is_none_or(|attempted_at| attempted_at.elapsed() >= WRITE_AGAIN);
        if failure.is_some() && is_due {
            self.state_store_watch.tried_at = Some(Instant::now());
            // An error is the store's next failure.
            let _ = self.shared.store.write_deferred();
            self.shared.events.write_unsaved();
            failure = self.shared.store.failure();
        }
        if failure.is_some() == self.state_store_watch.is_reported {
            return;
        }
        self.state_store_watch.is_reported = failure.is_some();
        self.drafts.push(match failure {
            Some(error) => {
                let text = format!(
                    "The state directory cannot be written: {}. The host works as configured. \
                     Until the directory can be written, changes of the configuration are rejected, \
                     VMs are not started, and new events are kept in memory only. Free space, \
                     remount the file system writable, or correct its permissions.",
                    error.detail
                );
                EventDraft::new(EventKind::StateNotWritable, "host", text)
            }
            None => {
                let text = "The state directory can be written again: changes of the \
                            configuration are accepted, VMs can be started, and events that were \
                            kept in memory are stored.";
                EventDraft::new(EventKind::StateWritable, "host", text)
            }
        });
    }
}
