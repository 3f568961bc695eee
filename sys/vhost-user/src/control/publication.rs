//! Published status of a device, and the features that its VM relies on.

use std::sync::Arc;

use suimon_ports::{DeviceNotice, NegotiatedFeatures};

use super::Shared;
use crate::device::{DeviceLink, VhostUserDevice};
use crate::features::protocol;

impl Shared {
    /// Stops all rings of a device if one has a fault, and reports the fault. The connection stays
    /// open, so that the guest can reinitialise its driver.
    pub(super) fn take_fault(&self, device: &mut VhostUserDevice) {
        let Some(fault) = device.take_fault() else { return };
        self.publish(device);
        self.notify(DeviceNotice::Violation { detail: fault.to_string() });
    }

    /// Returns the properties and the offer for the device of the next front-end.
    pub(super) fn link(&self) -> DeviceLink {
        let promised = self.changing().negotiated.features;
        let (model, offer) = self.subject.offer(promised);
        DeviceLink { model, offer, faults: Arc::clone(&self.faults) }
    }

    /// Updates the published status. If the number of running queues or the features have changed
    /// and queues run, reports the negotiated features.
    pub(super) fn publish(&self, device: &VhostUserDevice) {
        let queue_pairs = device.running_queues();
        let features = Some(device.features()).filter(|bits| *bits != 0);
        let mut changing = self.changing();
        let status = &mut changing.status;
        let previous = (status.queue_pairs, status.virtio_features);
        status.link_up = queue_pairs > 0;
        status.queue_pairs = queue_pairs;
        status.virtio_features = features;
        if previous == (queue_pairs, features) {
            return;
        }
        self.subject.refresh_offloads(status);
        drop(changing);
        if let Some(features) = features.filter(|_| queue_pairs > 0) {
            self.report_negotiated(NegotiatedFeatures { features: lasting(features), queue_pairs });
            self.notify(DeviceNotice::Negotiated { features, queue_pairs });
        }
    }

    /// Records the features and queues that the VM relies on from now on, and reports them if they
    /// have changed.
    pub(super) fn report_negotiated(&self, negotiated: NegotiatedFeatures) {
        let mut changing = self.changing();
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
