//! Jobs of the team worker: operations that may block on a disk or on the kernel's lock of network
//! devices (RTNL). They have a thread, so that they do not delay the reaction to a lost carrier.

use std::sync::mpsc::Receiver;

use suimon_ports::ControlSocket;
use suimon_quantity::PortId;

use super::inbox::OpenedSocket;
use super::sockets::WantedSocket;
use crate::events::Draft;
use crate::shared::Shared;

/// Job of the worker.
pub(crate) enum Job {
    /// Append events to the log.
    Tell(Vec<Draft>),
    /// Open a control socket. The result is returned by the inbox.
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

/// Executes jobs until the queue is closed.
pub(crate) fn work(shared: &Shared, jobs: &Receiver<Job>) {
    for job in jobs {
        job.run(shared);
    }
}
