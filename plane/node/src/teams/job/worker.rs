//! Execution of jobs.

use std::sync::mpsc::Receiver;

use super::Job;
use crate::shared::Shared;
use crate::teams::inbox::OpenedSocket;

impl Job {
    pub(crate) fn run(self, shared: &Shared) {
        match self {
            Self::AppendEvents(drafts) => shared.events.append(drafts),
            Self::Open { port, generation, device } => {
                let result = shared.team_member_devices.open_control(&device);
                let opened = OpenedSocket { port, generation, result };
                shared.teams.inbox().sockets.push(opened);
                shared.teams.wake.wake();
            }
            Self::Close(socket) => drop(socket),
        }
    }
}

/// Executes jobs until the queue is closed.
pub(crate) fn run_worker(shared: &Shared, jobs: &Receiver<Job>) {
    for job in jobs {
        job.run(shared);
    }
}
