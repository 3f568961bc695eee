//! Model of the network between nodes and members of etcd.
//!
//! - A message takes `delay_us` plus a uniformly distributed time up to `jitter_us`. Each node has
//!   one TCP connection at a time, to its current member; messages in one direction arrive in
//!   order.
//! - `lost_permille` of 1000 segments are lost. TCP retransmits them after 200 ms, then after twice
//!   that time, and so on (RFC 6298; 200 ms is Linux's minimum), and delays all later messages.
//! - A cut blocks one or both directions between some nodes and members. Messages sent meanwhile
//!   arrive at its end, unless it lasts longer than 3 s: then the connection is closed, as by
//!   `sys/etcd` after an unanswered keep-alive, and its messages are lost.
//!
//! Delays are assumed values for one room. No published data exists, and no published figure
//! depends on them.

use std::collections::BTreeMap;

use serde::Deserialize;
use suimon_quantity::Time;
use suimon_sim_kernel::{RandomStream, SECOND_NS};

/// Shortest retransmission timeout of TCP in ns.
const RESENT_NS: u64 = SECOND_NS / 5;
/// Time in ns without messages after which a connection is closed.
pub(crate) const CONNECTION_TIMEOUT_NS: u64 = 3 * SECOND_NS;

/// Delays and losses of the network.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkSpec {
    pub(crate) delay_us: u64,
    pub(crate) jitter_us: u64,
    #[serde(default)]
    #[serde(rename = "lost_permille")]
    pub(crate) loss_permille: u64,
}

/// Direction of messages between a node and etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToEtcd,
    ToNode,
}

/// End of the cut of each direction between a node and a member, indexed by [`Direction`].
type CutEnds = [Time; 2];

#[derive(Clone, Debug)]
pub(crate) struct Network {
    usual: NetworkSpec,
    bad: Option<(Time, NetworkSpec)>,
    cuts: BTreeMap<(u32, u32), CutEnds>,
    /// Arrival time of the last message of each node, by direction.
    last: Vec<[Time; 2]>,
    random: RandomStream,
}

impl Network {
    pub(crate) fn new(usual: NetworkSpec, nodes: usize, random: RandomStream) -> Self {
        let (cuts, last) = (BTreeMap::new(), vec![[Time::ZERO; 2]; nodes]);
        Self { usual, bad: None, cuts, last, random }
    }

    /// Sets delays and losses that replace the usual ones until a time.
    pub(crate) fn impair(&mut self, until: Time, spec: NetworkSpec) {
        self.bad = Some((until, spec));
    }

    /// Cuts one direction between a node and a member until a time.
    pub(crate) fn cut(&mut self, node: u32, member: u32, direction: Direction, until: Time) {
        let cut = self.cuts.entry((node, member)).or_default();
        cut[direction as usize] = cut[direction as usize].max(until);
    }

    /// Returns true if neither direction between a node and a member is cut.
    pub(crate) fn is_open(&self, now: Time, node: u32, member: u32) -> bool {
        self.cuts.get(&(node, member)).is_none_or(|cut| cut.iter().all(|until| *until <= now))
    }

    /// Opens a new connection of a node. Its messages are not delayed by those of the previous one.
    pub(crate) fn connect(&mut self, node: u32) {
        if let Some(last) = self.last.get_mut(node as usize) {
            *last = [Time::ZERO; 2];
        }
    }

    /// Returns the arrival time of a message sent now; `None` if it is lost.
    pub(crate) fn send(
        &mut self,
        now: Time,
        node: u32,
        member: u32,
        direction: Direction,
    ) -> Option<Time> {
        let spec = self.bad.filter(|(until, _)| now < *until).map_or(self.usual, |(_, spec)| spec);
        let mut ns = spec.delay_us * 1000 + self.random.draw_below(spec.jitter_us * 1000 + 1);
        let mut pause = RESENT_NS;
        while spec.loss_permille > 0 && self.random.draw_below(1000) < spec.loss_permille.min(900) {
            ns += pause;
            pause *= 2;
        }
        let cut = self.cuts.get(&(node, member)).map(|cut| cut[direction as usize]);
        if let Some(until) = cut.filter(|until| *until > now) {
            ns += until.as_ns() - now.as_ns();
        }
        if ns > CONNECTION_TIMEOUT_NS {
            return None;
        }
        let last = self.last.get_mut(node as usize)?;
        let arrival = Time::from_ns(now.as_ns() + ns).max(last[direction as usize]);
        last[direction as usize] = arrival;
        Some(arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(lost_permille: u64) -> Network {
        let spec = NetworkSpec { delay_us: 100, jitter_us: 50, loss_permille: lost_permille };
        Network::new(spec, 2, RandomStream::new(1, "network"))
    }

    fn time_at_ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn messages_arrive_in_order_and_late_after_lost_segments() {
        for lost in [0, 300] {
            let mut network = network(lost);
            let (mut last, mut longest) = (Time::ZERO, 0);
            for ms in 0..1000 {
                let Some(arrives) = network.send(time_at_ms(ms), 0, 0, Direction::ToEtcd) else {
                    continue;
                };
                assert!(arrives >= last && arrives > time_at_ms(ms));
                (last, longest) = (arrives, longest.max(arrives.as_ns() - time_at_ms(ms).as_ns()));
            }
            assert_eq!(longest > RESENT_NS, lost > 0, "{longest}");
        }
    }

    #[test]
    fn a_short_cut_delays_messages_in_its_direction_only() {
        let mut network = network(0);
        network.cut(0, 1, Direction::ToNode, time_at_ms(5000));
        assert!(
            !network.is_open(time_at_ms(1000), 0, 1) && network.is_open(time_at_ms(5000), 0, 1)
        );
        assert!(network.is_open(time_at_ms(1000), 0, 0) && network.is_open(time_at_ms(1000), 1, 1));
        assert_eq!(network.send(time_at_ms(1000), 0, 1, Direction::ToNode), None);
        assert!(
            network.send(time_at_ms(3000), 0, 1, Direction::ToNode).unwrap() >= time_at_ms(5000)
        );
        assert!(
            network.send(time_at_ms(1000), 0, 1, Direction::ToEtcd).unwrap() < time_at_ms(1001)
        );
        // New connection to another member.
        network.connect(0);
        assert!(
            network.send(time_at_ms(3001), 0, 0, Direction::ToNode).unwrap() < time_at_ms(3002)
        );
    }
}
