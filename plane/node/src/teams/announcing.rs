//! Announcement of addresses that moved to another member, so that the physical switches learn
//! their new port.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use suimon_frame::{Announcement, VlanTag};
use suimon_ports::CONTROL_PAUSE;
use suimon_quantity::{PortId, SwitchId, Time};

use super::effects::AnnounceAt;
use super::sockets::{Passed, Sockets};
use crate::SwitchPlane;

/// Maximum number of queued frames. A guest can have thousands of addresses; the physical switches
/// learn the rest from frames that the guest sends.
const WAITING_MAX: usize = 4096;
/// Frames sent at once, followed by a pause of [`CONTROL_PAUSE`].
const BURST: usize = 64;

/// Queue of announcements.
#[derive(Default)]
pub(crate) struct Announcing {
    waiting: VecDeque<Waiting>,
    resume_at: Time,
}

struct Waiting {
    /// Switch port to which the address belongs.
    port: PortId,
    member: PortId,
    frame: Announcement,
}

impl Announcing {
    /// Queues announcements for all addresses of these ports, in place of queued ones. Addresses
    /// beyond [`WAITING_MAX`] are not announced.
    pub(crate) fn add(&mut self, plane: &dyn SwitchPlane, places: &BTreeMap<PortId, AnnounceAt>) {
        self.waiting.retain(|waiting| !places.contains_key(&waiting.port));
        let switches: BTreeSet<SwitchId> = places.values().map(|place| place.switch).collect();
        for view in switches.into_iter().flat_map(|switch| plane.addresses(switch)) {
            let Some(place) = places.get(&view.port) else { continue };
            if self.waiting.len() >= WAITING_MAX {
                tracing::warn!("more addresses moved than can be announced");
                return;
            }
            let frame = Announcement::reverse_arp(view.mac, view.vlan.map(VlanTag::of));
            self.waiting.push_back(Waiting { port: view.port, member: place.member, frame });
        }
    }

    /// Sends at most [`BURST`] queued frames. A frame whose socket is not ready is queued again.
    pub(crate) fn send(&mut self, sockets: &mut Sockets, now: Time) {
        if self.waiting.is_empty() || now < self.resume_at {
            return;
        }
        for _ in 0..self.waiting.len().min(BURST) {
            let Some(waiting) = self.waiting.pop_front() else { break };
            match sockets.send(waiting.member, waiting.frame.bytes(), now) {
                Passed::Later => self.waiting.push_back(waiting),
                Passed::Sent | Passed::Lost => {}
            }
        }
        self.resume_at = now + CONTROL_PAUSE;
    }

    /// Returns when the next frames may be sent; `None` if none is queued.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.resume_at)
    }
}
