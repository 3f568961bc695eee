//! Opening and closing devices, and the TAPs that are ours to delete.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use suimon_ports::{DeviceError, DeviceNotice, PortObserver, PortSpec, StateStore, StoreError};
use suimon_quantity::PortId;

use crate::control::Command;
use crate::port_table::Port;
use crate::records::{clear_owned, load_owned, save_owned};
use crate::shared::Shared;
use crate::wanted::{Tap, WantedPorts, tap_of, wanted_taps};

/// Opens and closes the devices of ports, and keeps the record of TAPs.
pub(crate) struct Devices {
    shared: Arc<Shared>,
    store: Arc<dyn StateStore>,
    notices: SyncSender<Command>,
    /// The TAPs that did not exist before we made them. Recorded before they
    /// are made and forgotten after they are deleted, so none is left behind
    /// whenever the process dies.
    owned: BTreeSet<Tap>,
    retry_first: Duration,
}

impl Devices {
    pub(crate) fn load(
        shared: Arc<Shared>,
        store: Arc<dyn StateStore>,
        notices: SyncSender<Command>,
        retry_first: Duration,
    ) -> Result<Self, StoreError> {
        let owned = load_owned(store.as_ref())?.into_iter().collect();
        Ok(Self { shared, store, notices, owned, retry_first })
    }

    /// Records the TAPs that opening these would make, in one commit.
    pub(crate) fn record_owned<'s>(
        &mut self,
        specs: impl IntoIterator<Item = &'s PortSpec>,
    ) -> Result<(), StoreError> {
        let made: BTreeSet<Tap> = specs
            .into_iter()
            .filter_map(tap_of)
            .filter(|tap| !self.owned.contains(tap))
            .filter(|tap| !self.shared.devices.tap_exists(&tap.device, tap.netns.as_deref()))
            .collect();
        if made.is_empty() {
            return Ok(());
        }
        let changes = made.iter().map(save_owned).collect::<Result<Vec<_>, _>>()?;
        self.store.commit(&changes)?;
        self.owned.extend(made);
        Ok(())
    }

    /// Deletes our TAPs that are no longer wanted. What the host refuses is
    /// tried again after the next change.
    pub(crate) fn sweep_owned(&mut self, wanted: &WantedPorts) {
        let wanted = wanted_taps(wanted);
        let mut gone = Vec::new();
        for tap in self.owned.difference(&wanted) {
            match self.shared.devices.remove_tap(&tap.device, tap.netns.as_deref()) {
                Ok(()) => gone.push(tap.clone()),
                Err(error) => tracing::warn!(device = tap.device, %error, "a TAP stays behind"),
            }
        }
        if gone.is_empty() {
            return;
        }
        let changes: Vec<_> = gone.iter().map(clear_owned).collect();
        match self.store.commit(&changes) {
            Ok(()) => gone.iter().for_each(|tap| {
                self.owned.remove(tap);
            }),
            Err(error) => tracing::warn!(%error, "deleted TAPs are still recorded as ours"),
        }
    }

    /// Opens the device of a port that has none.
    pub(crate) fn open(&self, port: &Port) -> Result<(), DeviceError> {
        let (spec, generation) = {
            let mut state = port.lock();
            state.generation += 1;
            (state.spec.clone(), state.generation)
        };
        let observer = Arc::new(NoticeSender { generation, notices: self.notices.clone() });
        let queues = self.shared.plane.queue_host();
        let device = self.shared.devices.open(port.id, &spec, queues, observer)?;
        let mut state = port.lock();
        state.device = Some(device);
        state.failure = None;
        state.down_reason = None;
        Ok(())
    }

    /// Closes the device of a port, if it has one. Its queues are detached when
    /// this returns.
    pub(crate) fn close(port: &Port) {
        let device = {
            let mut state = port.lock();
            state.generation += 1;
            state.failure = None;
            state.device.take()
        };
        drop(device);
    }

    /// Closes the device of a port and notes why and when to try again.
    pub(crate) fn fail(&self, port: &Port, reason: String) {
        Self::close(port);
        port.lock().fail(Instant::now(), self.retry_first, reason);
    }
}

/// Passes a device's notices on to the control thread.
struct NoticeSender {
    generation: u64,
    notices: SyncSender<Command>,
}

impl PortObserver for NoticeSender {
    fn handle_notice(&self, port: PortId, notice: DeviceNotice) {
        // A full channel loses the event, not the state: whether the link is up
        // is asked of the device itself.
        let command = Command::Notice { port, generation: self.generation, notice };
        if self.notices.try_send(command).is_err() {
            tracing::warn!(port = port.0, "a device's notice was lost");
        }
    }
}
