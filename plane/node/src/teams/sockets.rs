//! The control sockets of members: who has one, who waits for one, who is left alone for
//! a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use suimon_contract::{EventKind, Name};
use suimon_ports::{AfterTurn, CONTROL_PAUSE, ControlError, ControlFrame, ControlSocket};
use suimon_quantity::{PortId, Time};

use super::inbox::OpenedSocket;
use super::member::Control;
use super::work::Job;
use crate::PortKey;
use crate::events::Draft;

/// Pauses between attempts grow to this many times the first.
const RETRY_FACTOR_MAX: u32 = 30;

/// A socket that a member needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedSocket {
    pub(crate) uplink: Name,
    pub(crate) device: String,
    /// Which opening of the device it belongs to.
    pub(crate) generation: u64,
}

impl WantedSocket {
    fn subject(&self) -> PortKey {
        PortKey::Uplink(self.uplink.clone())
    }
}

/// Sockets by the port of the member's device.
pub(crate) struct Sockets {
    sockets: BTreeMap<PortId, MemberSocket>,
    retry_first: Duration,
    /// What has become of them, for the teams.
    news: Vec<(PortId, Control)>,
    jobs: Vec<Job>,
}

struct MemberSocket {
    wanted: WantedSocket,
    state: State,
    /// Attempts in a row that failed.
    failures: u32,
}

enum State {
    Opening,
    Open { socket: Box<dyn ControlSocket>, paused_until: Time },
    Failed { retry_at: Time },
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Sent,
    /// Its socket is being opened, or has no room now.
    Later,
    /// There is no way for it.
    Lost,
}

impl Sockets {
    pub(crate) fn new(retry_first: Duration) -> Self {
        Self { sockets: BTreeMap::new(), retry_first, news: Vec::new(), jobs: Vec::new() }
    }

    /// Has the sockets that are wanted opened, and the others closed.
    pub(crate) fn follow(&mut self, wanted: BTreeMap<PortId, WantedSocket>, now: Time) {
        let is_wanted =
            |port: &PortId, of: &MemberSocket| wanted.get(port).is_some_and(|w| *w == of.wanted);
        let (stay, go): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.sockets).into_iter().partition(|(p, of)| is_wanted(p, of));
        self.sockets = stay;
        for (port, gone) in go {
            self.news.push((port, Control::Awaited));
            self.close(gone.state);
        }
        for (port, wanted) in wanted {
            match self.sockets.get_mut(&port) {
                Some(MemberSocket { state: state @ State::Failed { .. }, .. }) => {
                    if matches!(state, State::Failed { retry_at } if *retry_at <= now) {
                        *state = State::Opening;
                        self.jobs.push(Job::open(port, &wanted));
                    }
                }
                Some(_) => {}
                None => {
                    self.jobs.push(Job::open(port, &wanted));
                    let socket = MemberSocket { wanted, state: State::Opening, failures: 0 };
                    self.sockets.insert(port, socket);
                }
            }
        }
    }

    fn close(&mut self, state: State) {
        if let State::Open { socket, .. } = state {
            self.jobs.push(Job::Close(socket));
        }
    }

    /// The answer to [`Job::Open`].
    pub(crate) fn install(&mut self, opened: OpenedSocket, now: Time) {
        let OpenedSocket { port, generation, result } = opened;
        let waiting = self
            .sockets
            .get_mut(&port)
            .filter(|of| matches!(of.state, State::Opening) && of.wanted.generation == generation);
        match (waiting, result) {
            (Some(of), Ok(socket)) => {
                of.state = State::Open { socket, paused_until: now };
                if std::mem::take(&mut of.failures) > 0 {
                    let text =
                        "LACPDUs and announcements of the uplink can be sent and received again.";
                    let draft = Draft::new(EventKind::UplinkRecovered, of.wanted.subject(), text);
                    self.jobs.push(Job::Tell(vec![draft]));
                }
                self.news.push((port, Control::Open));
            }
            (Some(_), Err(error)) => self.fail(port, &error.to_string(), now),
            (None, Ok(socket)) => self.jobs.push(Job::Close(socket)),
            (None, Err(_)) => {}
        }
    }

    /// The worker did not take a question; it is asked again later.
    pub(crate) fn not_asked(&mut self, port: PortId, now: Time) {
        self.fail(port, "the daemon is overloaded", now);
    }

    /// Notes that there is no socket, why, and when to try again.
    fn fail(&mut self, port: PortId, reason: &str, now: Time) {
        let Some(of) = self.sockets.get_mut(&port) else { return };
        let factor = 1_u32.checked_shl(of.failures).unwrap_or(u32::MAX).min(RETRY_FACTOR_MAX);
        let before = of.failures;
        of.failures = before.saturating_add(1);
        let failed = State::Failed { retry_at: now + self.retry_first * factor };
        let state = std::mem::replace(&mut of.state, failed);
        if before == 0 {
            let text = format!(
                "LACPDUs and announcements of the uplink cannot be sent and received, and the \
                 daemon retries: {reason}."
            );
            let draft = Draft::new(EventKind::UplinkFailed, of.wanted.subject(), text);
            self.jobs.push(Job::Tell(vec![draft.with("reason", reason)]));
        }
        self.news.push((port, Control::Failed(reason.to_owned())));
        self.close(state);
    }

    /// Takes what waits on all sockets that are not left alone. Those that `woke` somebody
    /// and had nothing are left alone too, so that nobody is woken again and again.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        woke: &BTreeSet<PortId>,
        take: &mut dyn FnMut(PortId, &[u8]),
    ) {
        let mut broken = Vec::new();
        for (port, of) in &mut self.sockets {
            let State::Open { socket, paused_until } = &mut of.state else { continue };
            if *paused_until > now {
                continue;
            }
            let mut frames = 0_usize;
            let turn = socket.receive(&mut |frame: ControlFrame<'_>| {
                frames += 1;
                // One that is longer than what was copied of it is no LACPDU.
                if frame.wire_bytes == frame.bytes.len() {
                    take(*port, frame.bytes);
                }
            });
            match turn {
                Ok(AfterTurn::Wait) if frames > 0 || !woke.contains(port) => {}
                Ok(AfterTurn::Wait | AfterTurn::Pause) => *paused_until = now + CONTROL_PAUSE,
                Err(error) => broken.push((*port, error)),
            }
        }
        for (port, error) in broken {
            self.fail(port, &error.to_string(), now);
        }
    }

    /// Sends a frame by a member.
    pub(crate) fn send(&mut self, port: PortId, frame: &[u8], now: Time) -> Passed {
        let socket = match self.sockets.get_mut(&port).map(|of| &mut of.state) {
            Some(State::Open { socket, .. }) => socket,
            Some(State::Opening) => return Passed::Later,
            Some(State::Failed { .. }) | None => return Passed::Lost,
        };
        match socket.send(frame) {
            Ok(()) => Passed::Sent,
            Err(ControlError::Full { .. }) => Passed::Later,
            Err(error @ (ControlError::Down { .. } | ControlError::NoFrame { .. })) => {
                tracing::debug!(port = port.0, %error, "a control frame was lost");
                Passed::Lost
            }
            Err(error @ (ControlError::Gone { .. } | ControlError::Host { .. })) => {
                self.fail(port, &error.to_string(), now);
                Passed::Lost
            }
        }
    }

    /// What has become of sockets since this was last asked.
    pub(crate) fn take_news(&mut self) -> Vec<(PortId, Control)> {
        std::mem::take(&mut self.news)
    }

    pub(crate) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// What is to be done elsewhere.
    pub(crate) fn take_jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }

    /// When something is due without further events.
    pub(crate) fn next_deadline(&self, now: Time) -> Option<Time> {
        let due = |of: &MemberSocket| match of.state {
            State::Open { paused_until, .. } => Some(paused_until).filter(|at| *at > now),
            State::Failed { retry_at } => Some(retry_at),
            State::Opening => None,
        };
        self.sockets.values().filter_map(due).min()
    }

    /// What to wait for.
    pub(crate) fn wake_fds(&self, now: Time) -> Vec<(PortId, BorrowedFd<'_>)> {
        let open = self.sockets.iter().filter_map(|(port, of)| match &of.state {
            State::Open { socket, paused_until } if *paused_until <= now => {
                Some((*port, socket.wake_fd()))
            }
            _ => None,
        });
        open.collect()
    }
}
