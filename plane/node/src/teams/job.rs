//! Jobs of the team worker: operations that may block on a disk or on the kernel's lock of network
//! devices (RTNL). A separate thread executes them, so that they do not delay the reaction to a
//! lost carrier.

mod worker;

use suimon_ports::ControlSocket;
use suimon_quantity::PortId;

pub(super) use self::worker::run_worker;
use crate::events::EventDraft;

/// Job of the team worker thread.
pub(crate) enum Job {
    /// Append events to the event log.
    AppendEvents(Vec<EventDraft>),
    /// Open a control socket. The result is put into the inbox of the team thread.
    Open { port: PortId, generation: u64, device: String },
    /// Close a control socket, which may block.
    Close(Box<dyn ControlSocket>),
}

impl Job {
    pub(crate) fn open(port: PortId, generation: u64, device: &str) -> Self {
        Self::Open { port, generation, device: device.to_owned() }
    }
}
