//! One iteration of the team thread: processes events and deadlines of all teams.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use suimon_ports::CONTROL_RECEIVE_PAUSE;
use suimon_quantity::{PortId, Time};

use super::announcing::AnnouncementQueue;
use super::effects::{AnnouncementTarget, Effects};
use super::job::Job;
use super::sockets::Sockets;
use crate::shared::Shared;

/// State of the team thread.
pub(crate) struct TeamDriver {
    shared: Arc<Shared>,
    sockets: Sockets,
    announcing: AnnouncementQueue,
    jobs: SyncSender<Job>,
}

/// Result of one iteration of the team thread ([`TeamDriver::poll`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollResult {
    /// Deadline of the next iteration; `None` if only events cause one.
    Until(Option<Time>),
    /// The daemon stops the thread.
    Stop,
}

impl TeamDriver {
    pub(crate) fn new(shared: Arc<Shared>, retry_first: Duration, jobs: SyncSender<Job>) -> Self {
        let sockets = Sockets::new(retry_first);
        Self { shared, sockets, announcing: AnnouncementQueue::default(), jobs }
    }

    /// Processes queued events and everything that is due. `readable`: members whose sockets became
    /// readable. Does not block on a disk or on the kernel's lock of network devices (RTNL).
    pub(crate) fn poll(&mut self, readable: &BTreeSet<PortId>) -> PollResult {
        let shared = self.shared.clone();
        shared.teams.wake.drain();
        let inbox = std::mem::take(&mut *shared.teams.inbox());
        let now = shared.plane.now();
        let mut table = shared.teams.table();
        for (port, report) in inbox.links {
            table.handle_link(port, report, &*shared.plane, now);
        }
        for opened in inbox.sockets {
            self.sockets.handle_opened(opened, now);
        }
        self.sockets
            .receive(now, readable, &mut |port, frame| table.handle_frame(port, frame, now));
        for (port, control) in self.sockets.take_state_changes() {
            table.handle_control(port, control, now);
        }
        let effects = if inbox.is_stop_requested {
            table.end_lacp(now)
        } else {
            table.poll(&*shared.plane, now)
        };
        let (required, due) = (table.required_sockets(), table.next_deadline());
        drop(table);
        let Effects { frames, announcements, drafts } = effects;
        for (member, frame) in frames {
            self.sockets.send(member, frame.bytes(), now);
        }
        if !inbox.is_stop_requested {
            // After the last frames of members that leave, whose sockets are closed here; before
            // announcements, which may have to wait for the socket of a new member.
            self.sockets.update(required, now);
            self.announce(&announcements, now);
        }
        if !drafts.is_empty() {
            self.submit(Job::AppendEvents(drafts), now);
        }
        if inbox.is_stop_requested {
            return PollResult::Stop;
        }
        self.hand_over_jobs(now);
        let now_if_news = self.sockets.has_state_changes().then_some(now);
        let sockets = self.sockets.next_deadline(now);
        let announcing = self.announcing.next_deadline();
        PollResult::Until([due, now_if_news, sockets, announcing].into_iter().flatten().min())
    }

    fn announce(&mut self, targets: &BTreeMap<PortId, AnnouncementTarget>, now: Time) {
        if !targets.is_empty() {
            self.announcing.add(&*self.shared.plane, targets);
        }
        self.announcing.send(&mut self.sockets, now);
    }

    fn hand_over_jobs(&mut self, now: Time) {
        for job in self.sockets.take_jobs() {
            self.submit(job, now);
        }
    }

    fn submit(&mut self, job: Job, now: Time) {
        let Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) =
            self.jobs.try_send(job)
        else {
            return;
        };
        match job {
            Job::AppendEvents(drafts) => {
                tracing::warn!(events = drafts.len(), "events of teams are lost");
            }
            Job::Open { port, .. } => self.sockets.handle_rejected_job(port, now),
            Job::Close(socket) => drop(socket),
        }
    }

    /// Blocks until the deadline, a wake-up, or a readable socket. Returns the members with
    /// readable sockets.
    pub(crate) fn wait(&self, until: Option<Time>) -> BTreeSet<PortId> {
        let now = self.shared.plane.now();
        let sockets = self.sockets.wake_fds(now);
        let wake = self.shared.teams.wake.as_fd();
        let fds = sockets.iter().map(|(_, fd)| *fd).chain([wake]);
        let mut polled: Vec<PollFd<'_>> =
            fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let timeout = until.and_then(|deadline| Timespec::try_from(deadline.since(now)).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "the teams' thread cannot poll its sockets");
                std::thread::sleep(CONTROL_RECEIVE_PAUSE);
            }
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let ready = sockets.iter().zip(&polled).filter(|(_, fd)| is_ready(fd));
        ready.map(|((port, _), _)| *port).collect()
    }
}
