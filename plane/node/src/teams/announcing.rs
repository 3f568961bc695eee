//! Announcement of addresses that moved to another member, so that the physical switches learn
//! their new port.
//!
//! At most [`WAITING_MAX`] frames are queued for all teams. If more addresses move at once, ports
//! get equal shares of the queue, and shares that a port does not use go to the others: a guest
//! with very many addresses displaces only its own. Addresses that are configured come first.
//! Frames of different ports are sent in turn. Switches learn the rest when the guests send.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use suimon_frame::{Announcement, VlanTag};
use suimon_ports::CONTROL_RECEIVE_PAUSE;
use suimon_quantity::{PortId, SwitchId, Time};

use super::effects::AnnouncementTarget;
use super::sockets::{SendResult, Sockets};
use crate::SwitchPlane;

/// Maximum number of queued frames, of all ports and teams.
const WAITING_MAX: usize = 4096;
/// Frames sent at once, followed by a pause of [`CONTROL_RECEIVE_PAUSE`].
const BURST: usize = 64;

/// Queue of reverse ARP frames that announce moved addresses.
#[derive(Default)]
pub(crate) struct AnnouncementQueue {
    waiting: BTreeMap<PortId, Waiting>,
    /// Ports with queued frames, each once. The first one sends the next frame.
    rounds: VecDeque<PortId>,
    resume_at: Time,
}

/// Queued frames of the addresses of one port.
struct Waiting {
    /// Port of the team member that sends the frames.
    member: PortId,
    frames: VecDeque<Announcement>,
}

impl AnnouncementQueue {
    /// Queues the addresses of ports that have moved to another member. Replaces queued frames of
    /// these ports.
    pub(crate) fn add(
        &mut self,
        plane: &dyn SwitchPlane,
        targets: &BTreeMap<PortId, AnnouncementTarget>,
    ) {
        self.waiting.retain(|port, _| !targets.contains_key(port));
        let switches: BTreeSet<SwitchId> = targets.values().map(|target| target.switch).collect();
        for view in switches.into_iter().flat_map(|switch| plane.addresses(switch)) {
            let Some(target) = targets.get(&view.port) else { continue };
            let new = Waiting { member: target.member, frames: VecDeque::new() };
            let waiting = self.waiting.entry(view.port).or_insert(new);
            let frame = Announcement::reverse_arp(view.mac, view.vlan.map(VlanTag::for_vlan));
            waiting.frames.push_back(frame);
        }
        let dropped = self.bound();
        if dropped > 0 {
            tracing::warn!(dropped, "more addresses have moved than are announced");
        }
        self.rounds.retain(|port| self.waiting.contains_key(port));
        // Each port with queued frames gets a place in the order.
        let queued_ports: BTreeSet<PortId> = self.rounds.iter().copied().collect();
        self.rounds.extend(self.waiting.keys().filter(|port| !queued_ports.contains(port)));
    }

    /// Reduces the queue to [`WAITING_MAX`] frames. Returns the number of dropped ones.
    fn bound(&mut self) -> usize {
        let before = self.len();
        if before <= WAITING_MAX {
            return 0;
        }
        let queued = |share: usize| -> usize {
            self.waiting.values().map(|waiting| waiting.frames.len().min(share)).sum()
        };
        // The largest share of a port with which all fit: between `share` and `too_large`.
        let (mut share, mut too_large) = (0, WAITING_MAX + 1);
        while share + 1 < too_large {
            let middle = share.midpoint(too_large);
            if queued(middle) <= WAITING_MAX {
                share = middle;
            } else {
                too_large = middle;
            }
        }
        let mut remaining = WAITING_MAX - queued(share);
        for waiting in self.waiting.values_mut() {
            let has_more = waiting.frames.len() > share && remaining > 0;
            remaining -= usize::from(has_more);
            waiting.frames.truncate(share + usize::from(has_more));
        }
        self.waiting.retain(|_, waiting| !waiting.frames.is_empty());
        before - self.len()
    }

    fn len(&self) -> usize {
        self.waiting.values().map(|waiting| waiting.frames.len()).sum()
    }

    /// Removes the next frame. Returns its port, the member that sends it, and the frame.
    fn take(&mut self) -> Option<(PortId, PortId, Announcement)> {
        let port = self.rounds.pop_front()?;
        let waiting = self.waiting.get_mut(&port)?;
        let (member, frame) = (waiting.member, waiting.frames.pop_front()?);
        if waiting.frames.is_empty() {
            self.waiting.remove(&port);
        } else {
            self.rounds.push_back(port);
        }
        Some((port, member, frame))
    }

    /// Queues a frame again, behind the others of its port.
    fn put_back(&mut self, port: PortId, member: PortId, frame: Announcement) {
        let waiting = self.waiting.entry(port).or_insert_with(|| {
            self.rounds.push_back(port);
            Waiting { member, frames: VecDeque::new() }
        });
        waiting.frames.push_back(frame);
    }

    /// Sends up to [`BURST`] queued frames, unless the pause after the last burst has not ended.
    pub(crate) fn send(&mut self, sockets: &mut Sockets, now: Time) {
        if self.waiting.is_empty() || now < self.resume_at {
            return;
        }
        for _ in 0..self.len().min(BURST) {
            let Some((port, member, frame)) = self.take() else { break };
            match sockets.send(member, frame.bytes(), now) {
                SendResult::NotReady => self.put_back(port, member, frame),
                SendResult::Sent | SendResult::Discarded => {}
            }
        }
        self.resume_at = now + CONTROL_RECEIVE_PAUSE;
    }

    /// Returns the time of the next transmission; `None` if no frame is queued.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.resume_at)
    }
}

#[cfg(test)]
mod tests {
    use suimon_frame::MacAddr;
    use suimon_switch::AddressView;

    use super::*;
    use crate::testing::FakePlane;

    fn mac(port: u32, number: u32) -> MacAddr {
        let ([_, _, p, q], [_, _, a, b]) = (port.to_be_bytes(), number.to_be_bytes());
        MacAddr::new([2, 0, p, q, a, b])
    }

    /// Returns a queue that announces ports with these numbers of addresses: (port, number).
    fn announcing(addresses: &[(u32, u32)]) -> AnnouncementQueue {
        let plane = FakePlane::default();
        let views = addresses.iter().flat_map(|(port, number)| {
            (0..*number).map(|index| AddressView {
                mac: mac(*port, index),
                vlan: None,
                port: PortId(*port),
                is_static: index == 0,
                age: None,
            })
        });
        plane.set_addresses(views.collect());
        let target = AnnouncementTarget { switch: SwitchId(0), member: PortId(9999) };
        let targets = addresses.iter().map(|(port, _)| (PortId(*port), target)).collect();
        let mut announcing = AnnouncementQueue::default();
        announcing.add(&plane, &targets);
        announcing
    }

    fn take_all(mut announcing: AnnouncementQueue) -> Vec<u32> {
        core::iter::from_fn(|| announcing.take()).map(|(port, _, _)| port.0).collect()
    }

    #[test]
    fn a_guest_with_many_addresses_displaces_only_its_own() {
        let mut addresses = vec![(1, 5000), (2, 1024)];
        addresses.extend((3..203).map(|port| (port, 4)));
        let announcing = announcing(&addresses);
        assert_eq!(announcing.len(), WAITING_MAX);
        let announced = take_all(announcing);
        let count_of =
            |port| announced.iter().filter(|announced_port| **announced_port == port).count();
        assert!(
            (3..203).all(|port| count_of(port) == 4),
            "all addresses of the other ports are announced"
        );
        assert_eq!((count_of(1), count_of(2)), (WAITING_MAX - 1024 - 800, 1024));
        // Each port has its first address announced before any has its second.
        let first: BTreeSet<u32> = announced[..202].iter().copied().collect();
        assert_eq!(first.len(), 202);
    }

    #[test]
    fn the_queue_is_bounded_however_many_ports_there_are() {
        let ports = u32::try_from(WAITING_MAX).unwrap() + 100;
        let addresses: Vec<(u32, u32)> = (0..ports).map(|port| (port, 2)).collect();
        assert_eq!(take_all(announcing(&addresses)).len(), WAITING_MAX);
        let addresses: Vec<(u32, u32)> = (0..3000).map(|port| (port, 2)).collect();
        let announced = take_all(announcing(&addresses));
        assert_eq!(announced.len(), WAITING_MAX);
        assert_eq!(announced.into_iter().collect::<BTreeSet<u32>>().len(), 3000);
    }

    #[test]
    fn a_port_that_moves_again_is_queued_once() {
        let mut announcing = announcing(&[(1, 3), (2, 2)]);
        let (port, member, frame) = announcing.take().unwrap();
        announcing.put_back(port, member, frame);
        let plane = FakePlane::default();
        let view = |port| AddressView {
            mac: mac(port, 0),
            vlan: None,
            port: PortId(port),
            is_static: true,
            age: None,
        };
        plane.set_addresses(vec![view(1)]);
        let target = AnnouncementTarget { switch: SwitchId(0), member: PortId(9999) };
        announcing.add(&plane, &BTreeMap::from([(PortId(1), target)]));
        assert_eq!(announcing.len(), 3);
        assert_eq!(take_all(announcing), [2, 1, 2]);
    }
}
