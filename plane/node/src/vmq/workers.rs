//! Set of workers: changes according to the configuration, and retries after a failure.
//!
//! A CPU that is offline when the daemon starts does not prevent the start: workers run where they
//! can, and the configured set is retried like the device of a failed port.

use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, HostConfig, HostSection};
use suimon_ports::CpuAffinity;

use crate::control::Controller;
use crate::ports::placements;
use crate::vmq::texts::workers_changed_events;

/// Step of a change that concerns the set of workers.
#[derive(Clone, Copy)]
pub(crate) enum WorkersStep {
    /// Changes the set of workers.
    Change,
    /// Retries the set of workers of an earlier configuration. A failure does not concern the
    /// change.
    Retry,
}

/// Returns the step from the workers of one configuration to those of another. `current` are the
/// placements of the running workers.
pub(crate) fn workers_step(
    from: &HostSection,
    to: &HostSection,
    current: &[CpuAffinity],
) -> Option<WorkersStep> {
    let required = placements(to);
    if placements(from) != required {
        Some(WorkersStep::Change)
    } else {
        (required != current).then_some(WorkersStep::Retry)
    }
}

impl Controller {
    /// Starts and stops workers according to a configuration.
    ///
    /// # Errors
    /// A CPU cannot be used; the workers are unchanged. Or a worker that is to end does not
    /// respond; it continues.
    pub(crate) fn set_workers(&mut self, config: &HostConfig) -> Result<(), ApiError> {
        let placements = placements(&config.host);
        if placements != self.worker_placements {
            let previous = self.running_workers();
            let set = self.shared.plane.set_workers(&placements);
            let running = self.running_workers();
            self.drafts.extend(workers_changed_events(&previous, &running));
            if let Err(error) = set {
                // The former workers are restored, unless they have not changed.
                self.worker_placements =
                    running.into_iter().map(|(_, placement)| placement).collect();
                let text = format!("the workers could not be reconfigured: {error}");
                let error = ApiError::new(ErrorCode::HostError, text);
                return Err(error.with_resource("host").with_field("worker_cpus"));
            }
            self.worker_placements = placements;
        }
        self.workers_retry.current_failure = None;
        Ok(())
    }

    /// Like [`Controller::set_workers`] for the configuration in effect. A failure is recorded and
    /// retried.
    ///
    /// # Errors
    /// A CPU cannot be used; the workers are unchanged.
    pub(crate) fn restore_workers(&mut self, config: &HostConfig) -> Result<(), ApiError> {
        self.set_workers(config).inspect_err(|error| {
            let first = self.devices.retry_first;
            self.workers_retry.fail(Instant::now(), first, error.message.clone());
        })
    }

    /// Retries the configured set of workers after its retry time has passed.
    pub(crate) fn retry_workers(&mut self) {
        if !self.workers_retry.is_due(Instant::now()) {
            return;
        }
        let desired = self.shared.desired();
        match self.restore_workers(&desired.config) {
            // Power settings and the placement of queues depend on the workers.
            Ok(()) => self.publish_desired(),
            Err(error) => tracing::debug!(%error, "workers are retried later"),
        }
    }

    /// Returns the number and the placement of each worker.
    fn running_workers(&self) -> Vec<(u16, CpuAffinity)> {
        let views = self.shared.plane.workers().into_iter();
        views.map(|view| (view.id.0, view.placement)).collect()
    }
}
