//! Retry of failed port devices, and publication of the forwarding tables.

use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{ApiError, HostConfig};

use super::table::Port;
use super::texts::port_recovered_event;
use crate::control::Controller;

impl Controller {
    /// Reopens failed port devices after their retry time has passed.
    pub(crate) fn reopen_due(&mut self) {
        let now = Instant::now();
        for port in self.shared.ports.all() {
            let due = port.lock().retry.is_due(now);
            if due {
                self.retry(&port);
            }
        }
    }

    fn retry(&mut self, port: &Arc<Port>) {
        let spec = port.lock().spec.clone();
        let recorded = self.devices.created.record([&spec]).map_err(|error| error.to_string());
        let opened =
            recorded.and_then(|()| self.devices.open(port).map_err(|error| error.to_string()));
        match opened {
            Ok(()) => {
                if let Err(error) = self.devices.created.record_opened([&spec]) {
                    tracing::warn!(%error, "cannot record which socket belongs to the daemon");
                }
                self.drafts.push(port_recovered_event(&port.key).rate_limited());
                // The device may be missing in a running VM.
                self.notify_vms();
                let config = self.shared.desired().config.clone();
                if let Err(error) = self.publish(&config) {
                    tracing::error!(
                        %error,
                        "the forwarding tables do not contain the device's MTU"
                    );
                }
            }
            Err(reason) => {
                tracing::debug!(port = %port.key, reason, "retry failed");
                self.devices.fail(port, reason);
            }
        }
    }

    /// Publishes the forwarding tables of a configuration and the settings that depend on them.
    pub(crate) fn publish(&self, config: &HostConfig) -> Result<(), ApiError> {
        self.shared.publish_tables(config)?;
        self.shared.publish_kernel_paths(config);
        self.shared.publish_power(config);
        self.shared.publish_vmqs(config);
        self.shared.publish_steering(config);
        Ok(())
    }

    /// Publishes the tables of the desired configuration again, after a change of observed state
    /// such as a binding or an MTU.
    pub(crate) fn publish_desired(&self) {
        if let Err(error) = self.publish(&self.shared.desired().config) {
            tracing::error!(%error, "the switches keep their former forwarding tables");
        }
    }
}
