//! Set of workers: changes according to the configuration, and retries after a failure.
//!
//! A CPU that is offline when the daemon starts does not prevent the start: workers run where they
//! can, and the configured set is retried like the device of a failed port.

use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, HostConfig, HostSection};
use suimon_ports::Placement;

use crate::control::Controller;
use crate::ports::placements;
use crate::vmq::texts::processors_changed;

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
    current: &[Placement],
) -> Option<WorkersStep> {
    let wanted = placements(to);
    if placements(from) != wanted {
        Some(WorkersStep::Change)
    } else {
        (wanted != current).then_some(WorkersStep::Retry)
    }
}

impl Controller {
    /// Starts and stops workers according to a configuration.
    ///
    /// # Errors
    /// A CPU cannot be used; the workers are unchanged.
    pub(crate) fn set_processors(&mut self, config: &HostConfig) -> Result<(), ApiError> {
        let placements = placements(&config.host);
        if placements != self.processors {
            let was = self.running_processors();
            self.shared.plane.set_processors(&placements).map_err(|error| {
                let text = format!("the processors could not be changed: {error}");
                ApiError::new(ErrorCode::HostError, text).about("host").field("worker_cpus")
            })?;
            self.processors = placements;
            self.drafts.extend(processors_changed(&was, &self.running_processors()));
        }
        self.processors_failing.now = None;
        Ok(())
    }

    /// Like [`Controller::set_processors`] for the configuration in effect. A failure is recorded and
    /// retried.
    ///
    /// # Errors
    /// A CPU cannot be used; the workers are unchanged.
    pub(crate) fn restore_processors(&mut self, config: &HostConfig) -> Result<(), ApiError> {
        self.set_processors(config).inspect_err(|error| {
            let first = self.devices.retry_first;
            self.processors_failing.fail(Instant::now(), first, error.message.clone());
        })
    }

    /// Retries the configured set of workers after its retry time has passed.
    pub(crate) fn retry_processors(&mut self) {
        if !self.processors_failing.is_due(Instant::now()) {
            return;
        }
        let desired = self.shared.desired();
        match self.restore_processors(&desired.config) {
            // Power settings and the placement of queues depend on the workers.
            Ok(()) => self.publish_desired(),
            Err(error) => tracing::debug!(%error, "workers are retried later"),
        }
    }

    /// Returns the number and the placement of each worker.
    fn running_processors(&self) -> Vec<(u16, Placement)> {
        let views = self.shared.plane.processors().into_iter();
        views.map(|view| (view.id.0, view.placement)).collect()
    }
}
