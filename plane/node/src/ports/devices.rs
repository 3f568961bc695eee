//! Opening and closing of port devices.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use suimon_ports::{
    DeviceError, DeviceNotice, LinkProperties, PortObserver, StateStore, StateStoreError,
};
use suimon_quantity::PortId;

use crate::command::Command;
use crate::device_notices::{DeviceNotices, DeviceOwner};
use crate::ports::created_objects::CreatedObjects;
use crate::ports::negotiated_features::NegotiatedFeatureTable;
use crate::ports::table::Port;
use crate::shared::Shared;
use crate::teams::Teams;

/// Opens and closes the devices of ports.
pub(crate) struct Devices {
    shared: Arc<Shared>,
    pub(crate) commands: SyncSender<Command>,
    /// TAPs and socket files that the daemon created.
    pub(crate) created: CreatedObjects,
    /// Features that VMs have negotiated and rely on when they reconnect.
    pub(crate) negotiated_features: NegotiatedFeatureTable,
    pub(crate) retry_first: Duration,
}

impl Devices {
    pub(crate) fn load(
        shared: Arc<Shared>,
        store: Arc<dyn StateStore>,
        notices: SyncSender<Command>,
        retry_first: Duration,
    ) -> Result<Self, StateStoreError> {
        let negotiated_features = NegotiatedFeatureTable::load(store.clone())?;
        let created = CreatedObjects::load(
            store,
            shared.devices.clone(),
            shared.socket_files.clone(),
            shared.clock.clone(),
        )?;
        Ok(Self { shared, commands: notices, created, negotiated_features, retry_first })
    }

    /// Opens the device of a port without a device.
    ///
    /// # Errors
    /// The device cannot be opened; the port remains without a device.
    pub(crate) fn open(&self, port: &Port) -> Result<(), DeviceError> {
        let (spec, generation) = {
            let mut state = port.lock();
            state.generation += 1;
            (state.spec.clone(), state.generation)
        };
        let spec = self.negotiated_features.add_to_spec(&port.key, spec);
        port.lock().attempted_if_index = self.shared.devices.device_index(&spec);
        let owner = DeviceOwner::Port(port.id);
        let late_notices = self.shared.unannounced_notices.clone();
        let notices = DeviceNotices::new(owner, generation, self.commands.clone(), late_notices);
        port.lock().notices = Some(Arc::clone(&notices));
        let observer = Arc::new(NoticeSender { teams: self.shared.teams.clone(), notices });
        let queues = self.shared.plane.queue_host();
        let opened = self.shared.devices.open(port.id, &spec, queues, observer);
        (self.shared.progress)();
        let device = opened?;
        let mut state = port.lock();
        state.device = Some(device);
        state.retry.current_failure = None;
        state.down_reason = None;
        Ok(())
    }

    /// Closes the device of a port, if any. On return its queues are detached.
    pub(crate) fn close(port: &Port) {
        let device = {
            let mut state = port.lock();
            state.generation += 1;
            state.retry.current_failure = None;
            state.device.take()
        };
        drop(device);
    }

    /// Makes the retry of a failed port due at once if a different network device has appeared
    /// under the device name since the last attempt.
    pub(crate) fn retry_now_if_replaced(&self, port: &Port, now: Instant) {
        let mut state = port.lock();
        if state.retry.current_failure.is_none() {
            return;
        }
        let index = self.shared.devices.device_index(&state.spec);
        if index.is_some() && index != state.attempted_if_index {
            state.retry.reschedule(now);
        }
    }

    /// Closes the device of a port, records the reason and schedules a retry.
    pub(crate) fn fail(&self, port: &Port, reason: String) {
        let generation = port.lock().generation;
        Self::close(port);
        port.lock().retry.fail(Instant::now(), self.retry_first, reason);
        // A team excludes the member at once.
        self.shared.teams.handle_link(port.id, generation, LinkProperties::default());
    }
}

/// Forwards notices of a device to the control thread, and link changes also to the team thread:
/// the control thread may be busy with a change, and a failover must not wait for it.
struct NoticeSender {
    teams: Arc<Teams>,
    notices: Arc<DeviceNotices>,
}

impl PortObserver for NoticeSender {
    fn handle_notice(&self, port: PortId, notice: DeviceNotice) {
        if let DeviceNotice::LinkChanged(link) = notice {
            self.teams.handle_link(port, self.notices.generation, link);
        }
        self.notices.put(notice);
    }
}
