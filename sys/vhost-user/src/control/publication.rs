//! Published status of a device, and the features that its VM relies on.

use std::sync::Arc;

use suimon_ports::{DeviceNotice, NegotiatedFeatures};

use super::SharedDeviceState;
use crate::device::{DeviceParameters, VhostUserDevice};
use crate::features::protocol;

impl SharedDeviceState {
    /// Stops all rings of a device if one has a fault, and reports the fault. The connection stays
    /// open, so that the guest can reinitialise its driver.
    pub(super) fn take_fault(&self, device: &mut VhostUserDevice) {
        let Some(fault) = device.take_fault() else { return };
        self.publish_status(device);
        self.notify(DeviceNotice::ProtocolViolation { detail: fault.to_string() });
    }

    /// Returns the properties and the offer for the device of the next front-end.
    pub(super) fn device_parameters(&self) -> DeviceParameters {
        let promised = self.changeable_state().negotiated.features;
        let (model, offer) = self.owner.model_and_offer(promised);
        DeviceParameters { model, offer, fault_eventfd: Arc::clone(&self.fault_eventfd) }
    }

    /// Updates the published status. If the number of running queues or the features have changed
    /// and queues run, reports the negotiated features.
    pub(super) fn publish_status(&self, device: &VhostUserDevice) {
        let queue_pairs = device.running_queues();
        let features = Some(device.features()).filter(|bits| *bits != 0);
        let mut changing = self.changeable_state();
        let status = &mut changing.status;
        let previous = (status.queue_pairs, status.virtio_features);
        status.link_up = queue_pairs > 0;
        status.queue_pairs = queue_pairs;
        status.virtio_features = features;
        if previous == (queue_pairs, features) {
            return;
        }
        self.owner.refresh_offloads(status);
        drop(changing);
        if let Some(features) = features.filter(|_| queue_pairs > 0) {
            self.report_negotiated(NegotiatedFeatures { features: lasting(features), queue_pairs });
            self.notify(DeviceNotice::Negotiated { features, queue_pairs });
        }
    }

    /// Records the features and queues that the VM relies on from now on, and reports them if they
    /// have changed.
    pub(super) fn report_negotiated(&self, negotiated: NegotiatedFeatures) {
        let mut changing = self.changeable_state();
        if changing.negotiated == negotiated {
            return;
        }
        changing.negotiated = negotiated;
        drop(changing);
        self.notify(DeviceNotice::FeaturesCommitted(negotiated));
    }
}

/// Returns `features` without those that a front-end enables only temporarily: the log of written
/// pages, during a migration.
fn lasting(features: u64) -> u64 {
    features & !(1 << protocol::LOG_ALL_BIT)
}
