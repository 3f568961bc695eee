//! Control sockets of members: opening, retries, pauses and closing.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use suimon_contract::{EventKind, Name};
use suimon_ports::{CONTROL_RECEIVE_PAUSE, ControlError, ControlFrame, ControlSocket, NextReceive};
use suimon_quantity::{PortId, Time};

use super::inbox::OpenedSocket;
use super::job::Job;
use super::member::ControlSocketState;
use crate::PortKey;
use crate::events::EventDraft;

/// Retry pauses grow up to this factor of the first one.
const RETRY_FACTOR_MAX: u32 = 30;

/// Control socket that a member needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequiredSocket {
    pub(crate) uplink: Name,
    pub(crate) device: String,
    /// Number of the attempt to open the member's device.
    pub(crate) generation: u64,
}

impl RequiredSocket {
    fn subject(&self) -> PortKey {
        PortKey::Uplink(self.uplink.clone())
    }
}

/// Control sockets by the port of the member's device.
pub(crate) struct Sockets {
    sockets: BTreeMap<PortId, MemberSocket>,
    retry_first: Duration,
    /// Changes of the sockets' states that the teams have not processed.
    changes: Vec<(PortId, ControlSocketState)>,
    jobs: Vec<Job>,
}

struct MemberSocket {
    required: RequiredSocket,
    state: State,
    /// Number of consecutive failed attempts to open the socket.
    failures: u32,
}

enum State {
    Opening,
    Open { socket: Box<dyn ControlSocket>, paused_until: Time },
    Failed { retry_at: Time },
}

/// Result of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendResult {
    Sent,
    /// The socket is being opened, or its buffer is full.
    NotReady,
    /// The socket discarded the frame because of an error.
    Discarded,
}

impl Sockets {
    pub(crate) fn new(retry_first: Duration) -> Self {
        Self { sockets: BTreeMap::new(), retry_first, changes: Vec::new(), jobs: Vec::new() }
    }

    /// Queues jobs that open the required sockets whose attempt is due, and jobs that close sockets
    /// that are not required.
    pub(crate) fn update(&mut self, required: BTreeMap<PortId, RequiredSocket>, now: Time) {
        let is_required = |port: &PortId, socket: &MemberSocket| {
            required.get(port).is_some_and(|w| *w == socket.required)
        };
        let (kept, go): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.sockets)
            .into_iter()
            .partition(|(p, socket)| is_required(p, socket));
        self.sockets = kept;
        for (port, closed) in go {
            self.changes.push((port, ControlSocketState::Opening));
            self.close(closed.state);
        }
        for (port, required) in required {
            match self.sockets.get_mut(&port) {
                Some(MemberSocket { state: state @ State::Failed { .. }, .. }) => {
                    if matches!(state, State::Failed { retry_at } if *retry_at <= now) {
                        *state = State::Opening;
                        self.jobs.push(Job::open(port, required.generation, &required.device));
                    }
                }
                Some(_) => {}
                None => {
                    self.jobs.push(Job::open(port, required.generation, &required.device));
                    let socket = MemberSocket { required, state: State::Opening, failures: 0 };
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

    /// Processes the result of [`Job::Open`].
    pub(crate) fn handle_opened(&mut self, opened: OpenedSocket, now: Time) {
        let OpenedSocket { port, generation, result } = opened;
        let waiting = self.sockets.get_mut(&port).filter(|socket| {
            matches!(socket.state, State::Opening) && socket.required.generation == generation
        });
        match (waiting, result) {
            (Some(entry), Ok(socket)) => {
                entry.state = State::Open { socket, paused_until: now };
                if std::mem::take(&mut entry.failures) > 0 {
                    let text =
                        "LACPDUs and announcements of the uplink can be sent and received again.";
                    let draft =
                        EventDraft::new(EventKind::UplinkRecovered, entry.required.subject(), text);
                    self.jobs.push(Job::AppendEvents(vec![draft]));
                }
                self.changes.push((port, ControlSocketState::Open));
            }
            (Some(_), Err(error)) => self.fail(port, &error.to_string(), now),
            (None, Ok(socket)) => self.jobs.push(Job::Close(socket)),
            (None, Err(_)) => {}
        }
    }

    /// Handles an [`Job::Open`] for which the worker's queue had no room. The socket is opened
    /// later.
    pub(crate) fn handle_rejected_job(&mut self, port: PortId, now: Time) {
        self.fail(port, "the daemon is overloaded", now);
    }

    /// Records the failure of a socket and schedules a retry. Emits an event for the first failure.
    fn fail(&mut self, port: PortId, reason: &str, now: Time) {
        let Some(socket) = self.sockets.get_mut(&port) else { return };
        let factor = 1_u32.checked_shl(socket.failures).unwrap_or(u32::MAX).min(RETRY_FACTOR_MAX);
        let before = socket.failures;
        socket.failures = before.saturating_add(1);
        let failed = State::Failed { retry_at: now + self.retry_first * factor };
        let state = std::mem::replace(&mut socket.state, failed);
        if before == 0 {
            let text = format!(
                "LACPDUs and announcements of the uplink cannot be sent and received, and the \
                 daemon retries: {reason}."
            );
            let draft = EventDraft::new(EventKind::UplinkFailed, socket.required.subject(), text);
            self.jobs.push(Job::AppendEvents(vec![draft.with("reason", reason)]));
        }
        self.changes.push((port, ControlSocketState::Failed(reason.to_owned())));
        self.close(state);
    }

    /// Receives queued frames of all sockets that are not paused. A socket in `readable` without a
    /// frame is paused, too, so that it does not wake the thread continuously.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        readable: &BTreeSet<PortId>,
        handle_frame: &mut dyn FnMut(PortId, &[u8]),
    ) {
        let mut broken = Vec::new();
        for (port, socket) in &mut self.sockets {
            let State::Open { socket, paused_until } = &mut socket.state else { continue };
            if *paused_until > now {
                continue;
            }
            let mut frames = 0_usize;
            let result = socket.receive(&mut |frame: ControlFrame<'_>| {
                frames += 1;
                // A frame longer than its copied part is not an LACPDU.
                if frame.wire_bytes == frame.bytes.len() {
                    handle_frame(*port, frame.bytes);
                }
            });
            match result {
                Ok(NextReceive::WhenReadable) if frames > 0 || !readable.contains(port) => {}
                Ok(NextReceive::WhenReadable | NextReceive::AfterPause) => {
                    *paused_until = now + CONTROL_RECEIVE_PAUSE;
                }
                Err(error) => broken.push((*port, error)),
            }
        }
        for (port, error) in broken {
            self.fail(port, &error.to_string(), now);
        }
    }

    /// Sends a frame by a member.
    pub(crate) fn send(&mut self, port: PortId, frame: &[u8], now: Time) -> SendResult {
        let socket = match self.sockets.get_mut(&port).map(|socket| &mut socket.state) {
            Some(State::Open { socket, .. }) => socket,
            Some(State::Opening) => return SendResult::NotReady,
            Some(State::Failed { .. }) | None => return SendResult::Discarded,
        };
        match socket.send(frame) {
            Ok(()) => SendResult::Sent,
            Err(ControlError::TransmitQueueFull { .. }) => SendResult::NotReady,
            Err(error @ (ControlError::DeviceDown { .. } | ControlError::InvalidLength { .. })) => {
                tracing::debug!(port = port.0, %error, "a control frame was lost");
                SendResult::Discarded
            }
            Err(
                error
                @ (ControlError::DeviceMissing { .. } | ControlError::SystemCallFailed { .. }),
            ) => {
                self.fail(port, &error.to_string(), now);
                SendResult::Discarded
            }
        }
    }

    /// Returns changes of state since the last call.
    pub(crate) fn take_state_changes(&mut self) -> Vec<(PortId, ControlSocketState)> {
        std::mem::take(&mut self.changes)
    }

    pub(crate) fn has_state_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Returns the jobs for the worker.
    pub(crate) fn take_jobs(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.jobs)
    }

    /// Returns the next deadline: end of a pause or a retry; `None` if there is none.
    pub(crate) fn next_deadline(&self, now: Time) -> Option<Time> {
        let due = |socket: &MemberSocket| match socket.state {
            State::Open { paused_until, .. } => Some(paused_until).filter(|time| *time > now),
            State::Failed { retry_at } => Some(retry_at),
            State::Opening => None,
        };
        self.sockets.values().filter_map(due).min()
    }

    /// Returns the file descriptors to poll, of sockets that are not paused.
    pub(crate) fn wake_fds(&self, now: Time) -> Vec<(PortId, BorrowedFd<'_>)> {
        let open = self.sockets.iter().filter_map(|(port, socket)| match &socket.state {
            State::Open { socket, paused_until } if *paused_until <= now => {
                Some((*port, socket.wake_fd()))
            }
            _ => None,
        });
        open.collect()
    }
}
