//! What may wait for the disk, or for the kernel's lock of network devices: done by a
//! thread of its own, so that the loss of a carrier is not kept waiting.

use std::sync::mpsc::Receiver;

use suimon_ports::ControlSocket;
use suimon_quantity::PortId;

use super::inbox::OpenedSocket;
use super::sockets::WantedSocket;
use crate::events::Draft;
use crate::shared::Shared;

/// One thing to do.
pub(crate) enum Job {
    /// Write events.
    Tell(Vec<Draft>),
    /// Open a control socket; the answer comes by the inbox.
    Open { port: PortId, generation: u64, device: String },
    /// Close a control socket.
    Close(Box<dyn ControlSocket>),
}

impl Job {
    pub(crate) fn open(port: PortId, wanted: &WantedSocket) -> Self {
        Self::Open { port, generation: wanted.generation, device: wanted.device.clone() }
    }

    pub(crate) fn run(self, shared: &Shared) {
        match self {
            Self::Tell(drafts) => shared.events.append(drafts),
            Self::Open { port, generation, device } => {
                let result = shared.members.open_control(&device);
                let opened = OpenedSocket { port, generation, result };
                shared.teams.inbox().sockets.push(opened);
                shared.teams.wake.wake();
            }
            Self::Close(socket) => drop(socket),
        }
    }
}

/// Works until nobody can ask for anything any more.
pub(crate) fn work(shared: &Shared, jobs: &Receiver<Job>) {
    for job in jobs {
        job.run(shared);
    }
}
