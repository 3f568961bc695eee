//! Checkers of frames and workers.

use std::collections::{BTreeMap, BTreeSet};

use suimon_quantity::Time;
use suimon_sim_kernel::{Checker, SECOND_NS, Violations};

use crate::network::facts::Fact;

/// Time in ns after a change of a link's state within which frames may be lost.
const RELEARNED_NS: u64 = SECOND_NS / 20;

/// Checks that each frame is received once and in order during moves of queues, and that frames are
/// lost only when a link fails.
#[derive(Default)]
pub(crate) struct FrameOrderChecker {
    /// State of each session, by VM and number of the session.
    sessions: BTreeMap<(u32, u32), Session>,
    /// Time of the last change of a link's state.
    link_changed: Option<u64>,
}

#[derive(Default)]
struct Session {
    sent: u64,
    /// Number of the train that was received last.
    received: u64,
    /// Numbers of trains after `received` that were lost.
    lost: BTreeSet<u64>,
}

impl FrameOrderChecker {
    fn received(&mut self, vm: u32, session: u32, number: u64) -> Option<String> {
        let session_state = self.sessions.entry((vm, session)).or_default();
        let last = std::mem::replace(&mut session_state.received, number);
        let is_whole = (last + 1..number).all(|other| session_state.lost.remove(&other));
        if number > last && number <= session_state.sent && is_whole {
            return None;
        }
        Some(format!("VM {vm}, session {session}: frame {number} was received after {last}"))
    }
}

impl Checker<Fact> for FrameOrderChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        match *fact {
            Fact::Sent { vm, session, number } => {
                self.sessions.entry((vm, session)).or_default().sent = number;
            }
            Fact::Received { vm, session, number, .. } => {
                complaints.checks += 1;
                if let Some(complaint) = self.received(vm, session, number) {
                    complaints.add(now, "frames", complaint);
                }
            }
            Fact::Lost { vm, session, number, .. } => {
                self.sessions.entry((vm, session)).or_default().lost.insert(number);
                let until = self.link_changed.map(|relearned_at| relearned_at + RELEARNED_NS);
                if until.is_none_or(|until| now.as_ns() > until) {
                    let complaint = format!("VM {vm}, session {session}: frame {number} is lost");
                    complaints.add(now, "frames", complaint);
                }
            }
            Fact::LinkChanged { .. } => self.link_changed = Some(now.as_ns()),
            _ => {}
        }
    }
}

/// Largest permitted duration of a queue's move in ns.
const MOVED_NS: u64 = SECOND_NS;

/// Checks that the number of workers in use is within its limit, and that moves of queues complete.
#[derive(Default)]
pub(crate) struct WorkerLimitChecker {
    most: u16,
    moving_since: Option<u64>,
}

impl Checker<Fact> for WorkerLimitChecker {
    fn observe(&mut self, now: Time, fact: &Fact, complaints: &mut Violations) {
        match *fact {
            Fact::WorkerLimitChanged { max_processors } => self.most = max_processors,
            Fact::WorkersInUse { moving, .. } if moving > 0 => {
                let since = *self.moving_since.get_or_insert(now.as_ns());
                if now.as_ns() > since + MOVED_NS {
                    let complaint = format!("{moving} queues have been moving for a second");
                    complaints.add(now, "processors", complaint);
                    self.moving_since = None;
                }
            }
            Fact::WorkersInUse { processors, moving: 0 } if processors > self.most => {
                let complaint =
                    format!("{processors} workers have queues, {} are permitted", self.most);
                complaints.add(now, "processors", complaint);
            }
            Fact::WorkersInUse { .. } => self.moving_since = None,
            _ => {}
        }
    }
}
