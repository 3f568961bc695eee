//! Opening and closing devices.

mod promises;

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use suimon_ports::{DeviceError, DeviceNotice, LinkFacts, PortObserver, StateStore, StoreError};
use suimon_quantity::PortId;

use crate::belongings::Belongings;
use crate::control::Command;
use crate::device_notices::{DeviceNotices, DeviceOwner};
use crate::devices::promises::Promises;
use crate::port_table::Port;
use crate::shared::Shared;
use crate::teams::Teams;

/// Opens and closes the devices of ports.
pub(crate) struct Devices {
    shared: Arc<Shared>,
    pub(crate) notices: SyncSender<Command>,
    /// What on the host is ours.
    pub(crate) belongings: Belongings,
    /// What VMs rely on when they come back.
    pub(crate) promises: Promises,
    pub(crate) retry_first: Duration,
}

impl Devices {
    pub(crate) fn load(
        shared: Arc<Shared>,
        store: Arc<dyn StateStore>,
        notices: SyncSender<Command>,
        retry_first: Duration,
    ) -> Result<Self, StoreError> {
        let promises = Promises::load(store.clone())?;
        let belongings = Belongings::load(shared.clone(), store)?;
        Ok(Self { shared, notices, belongings, promises, retry_first })
    }

    /// Opens the device of a port that has none.
    pub(crate) fn open(&self, port: &Port) -> Result<(), DeviceError> {
        let (spec, generation) = {
            let mut state = port.lock();
            state.generation += 1;
            (state.spec.clone(), state.generation)
        };
        let spec = self.promises.add_to(&port.key, spec);
        port.lock().tried_index = self.shared.devices.device_index(&spec);
        let owner = DeviceOwner::Port(port.id);
        let late = self.shared.late_notices.clone();
        let notices = DeviceNotices::new(owner, generation, self.notices.clone(), late);
        port.lock().notices = Some(Arc::clone(&notices));
        let observer = Arc::new(NoticeSender { teams: self.shared.teams.clone(), notices });
        let queues = self.shared.plane.queue_host();
        let device = self.shared.devices.open(port.id, &spec, queues, observer)?;
        let mut state = port.lock();
        state.device = Some(device);
        state.failing.now = None;
        state.down_reason = None;
        Ok(())
    }

    /// Closes the device of a port, if it has one. Its queues are detached when
    /// this returns.
    pub(crate) fn close(port: &Port) {
        let device = {
            let mut state = port.lock();
            state.generation += 1;
            state.failing.now = None;
            state.device.take()
        };
        drop(device);
    }

    /// Makes a failed port due if another network device has taken the name of its device since the
    /// last attempt.
    pub(crate) fn expedite(&self, port: &Port, now: Instant) {
        let mut state = port.lock();
        if state.failing.now.is_none() {
            return;
        }
        let index = self.shared.devices.device_index(&state.spec);
        if index.is_some() && index != state.tried_index {
            state.failing.reschedule(now);
        }
    }

    /// Closes the device of a port and notes why and when to try again.
    pub(crate) fn fail(&self, port: &Port, reason: String) {
        let generation = port.lock().generation;
        Self::close(port);
        port.lock().failing.fail(Instant::now(), self.retry_first, reason);
        // A team that it is a member of does without it from now on.
        self.shared.teams.hear_link(port.id, generation, LinkFacts::default());
    }
}

/// Passes a device's notices on to the control thread, and what concerns teams to
/// theirs: the control thread may be busy with a change, and a carrier that is lost
/// cannot wait for it.
struct NoticeSender {
    teams: Arc<Teams>,
    notices: Arc<DeviceNotices>,
}

impl PortObserver for NoticeSender {
    fn handle_notice(&self, port: PortId, notice: DeviceNotice) {
        if let DeviceNotice::LinkChanged(link) = notice {
            self.teams.hear_link(port, self.notices.generation, link);
        }
        self.notices.put(notice);
    }
}
