//! The members of etcd: who leads, and which requests come through.
//!
//! - A request goes from the member that it came to, to the leader (`peer_us` if that is another). The
//!   leader takes `write_us` for each, one after the other, and it is done when it is on the disks of a
//!   majority: `sync_us` and twice `peer_us` later. Reads are linearizable, so they go the same way, and so
//!   does keeping a lease alive.
//! - A leader without a majority of members does nothing; what came to it meanwhile waits. After `election_ms`
//!   and up to as long again it leads no more, and one of a majority that hear each other does, if there
//!   is one. Of what had come before the majority was lost the first ones may be done yet and the
//!   others not, and nobody is told: the outcome is unknown. What comes while there is no leader is refused.
//! - One that has 5000 requests to do refuses others, as etcd does where what is agreed on is so far ahead of what
//!   is done.
//! - A new leader counts all leases anew.
//! - A member that is down answers nothing, and who is connected to it finds that out at once. One that
//!   the leader does not hear goes on without telling anything new.
//!
//! Parameters: `election_ms` is etcd's default (etcd.io, "Tuning"). The others make what etcd.io
//! tells under "Performance" of three members in one place: less than a millisecond for a request
//! under light load, and more than 30 000 requests a second.

use std::collections::VecDeque;

use serde::Deserialize;
use suimon_quantity::Time;

use crate::kernel::Dice;

/// etcd's `maxGapBetweenApplyAndCommitIndex`.
const BEHIND_MAX: usize = 5000;

/// What etcd is like.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EtcdSpec {
    pub(crate) members: u32,
    pub(crate) write_us: u64,
    pub(crate) sync_us: u64,
    pub(crate) peer_us: u64,
    pub(crate) election_ms: u64,
    /// For how long a node that says nothing may lead stores.
    pub(crate) session_s: u64,
    /// So long a node waits for an answer.
    pub(crate) patience_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Seat {
    is_up: bool,
    /// Members with the same number hear each other.
    island: u32,
}

/// A request that the leader has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) call: u64,
    /// To which member it came.
    pub(crate) member: u32,
    /// When it is done, if a majority is there.
    pub(crate) done: Time,
    taken: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct Etcd {
    spec: EtcdSpec,
    seats: Vec<Seat>,
    leader: Option<u32>,
    log: VecDeque<Taken>,
    busy: Time,
    /// Since when the leader has no majority.
    lost: Option<Time>,
    /// Everything takes so many percent until then.
    slow: (Time, u64),
    dice: Dice,
}

impl Etcd {
    pub(crate) fn new(spec: EtcdSpec, dice: Dice) -> Self {
        Self {
            seats: vec![Seat { is_up: true, island: 0 }; spec.members as usize],
            spec,
            leader: Some(0),
            log: VecDeque::new(),
            busy: Time::ZERO,
            lost: None,
            slow: (Time::ZERO, 100),
            dice,
        }
    }

    pub(crate) const fn leader(&self) -> Option<u32> {
        self.leader
    }

    pub(crate) fn is_up(&self, member: u32) -> bool {
        self.seats[member as usize].is_up
    }

    /// Whether there is a leader that a majority hears.
    pub(crate) fn works(&self) -> bool {
        self.leader.is_some_and(|leader| self.is_majority(leader))
    }

    /// Whether a member tells what is new.
    pub(crate) fn tells(&self, member: u32) -> bool {
        self.works() && self.leader.is_some_and(|leader| self.hear(leader, member))
    }

    fn hear(&self, one: u32, other: u32) -> bool {
        let (one, other) = (self.seats[one as usize], self.seats[other as usize]);
        one.is_up && other.is_up && one.island == other.island
    }

    fn is_majority(&self, leader: u32) -> bool {
        let heard = (0..self.spec.members).filter(|member| self.hear(leader, *member)).count();
        heard * 2 > self.seats.len()
    }

    fn times(&self, now: Time, us: u64) -> u64 {
        let percent = if now < self.slow.0 { self.slow.1 } else { 100 };
        us * 10 * percent
    }

    /// A request comes to a member. When it may be done; `None`: nothing is done of it.
    pub(crate) fn take(&mut self, now: Time, member: u32, call: u64) -> Option<Time> {
        let leader = self.leader.filter(|leader| self.hear(*leader, member))?;
        if self.log.len() >= BEHIND_MAX {
            return None;
        }
        let hop = if leader == member { 0 } else { self.times(now, self.spec.peer_us) };
        self.busy = self.busy.max(Time::from_ns(now.as_ns() + hop));
        self.busy = Time::from_ns(self.busy.as_ns() + self.times(now, self.spec.write_us));
        let after = self.times(now, self.spec.sync_us + 2 * self.spec.peer_us);
        let last = self.log.back().map_or(Time::ZERO, |last| last.done);
        let done = Time::from_ns(self.busy.as_ns() + after).max(last);
        self.log.push_back(Taken { call, member, done, taken: now });
        Some(done)
    }

    /// The next request that is done now.
    pub(crate) fn next_done(&mut self, now: Time) -> Option<Taken> {
        if !self.works() {
            return None;
        }
        self.log.front().filter(|first| first.done <= now)?;
        self.log.pop_front()
    }

    /// So much longer everything takes until then, in percent.
    pub(crate) fn slow_down(&mut self, until: Time, percent: u64) {
        self.slow = (until, percent);
    }

    /// It is as quick as it was: when what waits is done now.
    pub(crate) fn speed_up(&mut self, now: Time) -> Vec<Time> {
        if now < self.slow.0 {
            return Vec::new();
        }
        self.busy = now;
        let (write, after) = (self.spec.write_us, self.spec.sync_us + 2 * self.spec.peer_us);
        for taken in &mut self.log {
            self.busy = Time::from_ns(self.busy.as_ns() + write * 1000);
            taken.done = taken.done.min(Time::from_ns(self.busy.as_ns() + after * 1000));
        }
        self.log.iter().map(|taken| taken.done).collect()
    }

    /// A member ends or begins.
    pub(crate) fn set_up(&mut self, now: Time, member: u32, is_up: bool) {
        self.seats[member as usize].is_up = is_up;
        self.note(now);
    }

    /// Members hear those of the same island.
    pub(crate) fn set_islands(&mut self, now: Time, islands: impl Fn(u32) -> u32) {
        for (member, seat) in (0..).zip(&mut self.seats) {
            seat.island = islands(member);
        }
        self.note(now);
    }

    fn note(&mut self, now: Time) {
        self.lost = if self.works() { None } else { self.lost.or(Some(now)) };
    }

    /// How long until members elect another leader, if they have to.
    pub(crate) fn election_ns(&mut self) -> u64 {
        let ns = self.spec.election_ms * 1_000_000;
        ns + self.dice.below(ns + 1)
    }

    /// The time for an election has come. Whether somebody leads who did not, and the requests of
    /// which nobody hears any more.
    pub(crate) fn elect(&mut self, now: Time) -> (bool, Vec<u64>) {
        if self.works() {
            return (false, Vec::new());
        }
        let able = (0..self.spec.members).filter(|member| self.is_majority(*member));
        let able: Vec<u32> = able.collect();
        self.leader = None;
        let lost = self.lost.unwrap_or(now);
        let before = self.log.iter().take_while(|taken| taken.taken <= lost).count();
        // Without a majority nobody is elected; who had the log may be, later.
        if able.is_empty() {
            return (false, Vec::new());
        }
        let kept = self.dice.below(before as u64 + 1) as usize;
        let gone = self.log.drain(kept..).map(|taken| taken.call).collect();
        for taken in &mut self.log {
            taken.done = now;
        }
        self.busy = now;
        self.leader = Some(able[self.dice.below(able.len() as u64) as usize]);
        self.note(now);
        (true, gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn etcd(seed: u64) -> Etcd {
        let spec = EtcdSpec {
            members: 3,
            write_us: 30,
            sync_us: 300,
            peer_us: 100,
            election_ms: 1000,
            session_s: 5,
            patience_ms: 2000,
        };
        Etcd::new(spec, Dice::new(seed, "etcd"))
    }

    fn at(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    fn done(etcd: &mut Etcd, us: u64) -> Vec<u64> {
        std::iter::from_fn(|| etcd.next_done(at(us))).map(|taken| taken.call).collect()
    }

    #[test]
    fn one_request_takes_what_is_published_and_many_are_as_many_as_is_published() {
        let mut etcd = etcd(1);
        let alone = etcd.take(at(0), 1, 0).unwrap();
        assert!(alone < at(1000), "less than a millisecond: {alone}");
        let mut count = done(&mut etcd, 1000).len();
        for call in 1..30_000 {
            let us = 1000 + call * 33;
            etcd.take(at(us), 0, call).unwrap();
            count += done(&mut etcd, us).len();
        }
        count += done(&mut etcd, 1_001_000).len();
        assert_eq!(count, 30_000, "a second");
        // It does not take more than it can do for ever.
        let taken = (0..).take_while(|call| etcd.take(at(1_001_000), 0, *call).is_some()).count();
        assert_eq!(taken, BEHIND_MAX);
    }

    #[test]
    fn what_came_while_it_was_slow_is_done_soon_after() {
        let mut etcd = etcd(1);
        etcd.slow_down(at(1_000_000), 100_000);
        let last = (0..100).map(|call| etcd.take(at(0), 0, call).unwrap()).max().unwrap();
        assert!(last > at(3_000_000), "{last}");
        assert_eq!(
            done(&mut etcd, 1_000_000).len(),
            16,
            "30 ms each, and half a second until the first"
        );
        let last = etcd.speed_up(at(1_000_000)).into_iter().max().unwrap();
        assert!(last < at(1_004_000), "{last}");
    }

    #[test]
    fn a_leader_without_a_majority_does_nothing_and_what_it_had_is_done_by_the_next_or_never() {
        let (mut kept, mut gone) = (0, 0);
        for seed in 0..50 {
            let mut etcd = etcd(seed);
            for call in 0..4 {
                etcd.take(at(0), 0, call).unwrap();
            }
            etcd.set_islands(at(10), |member| u32::from(member != 0));
            // It does not know yet, and neither do the others.
            assert!(etcd.take(at(20), 0, 9).is_some() && etcd.take(at(20), 1, 8).is_none());
            assert_eq!(done(&mut etcd, 2_000_000), [0; 0]);
            assert!(!etcd.tells(0) && !etcd.tells(1));
            let (is_new, dropped) = etcd.elect(at(2_000_000));
            assert!(is_new && etcd.leader() != Some(0) && dropped.contains(&9), "{dropped:?}");
            assert!(etcd.tells(1) && !etcd.tells(0));
            let after = done(&mut etcd, 2_000_000);
            assert_eq!(after, (0..after.len() as u64).collect::<Vec<_>>(), "the first of them");
            (kept, gone) = (kept + after.len(), gone + dropped.len());
        }
        assert!(kept > 50 && gone > 50, "{kept} and {gone}");
    }

    #[test]
    fn without_a_majority_nobody_is_elected_until_there_is_one() {
        let mut etcd = etcd(1);
        etcd.set_up(at(0), 0, false);
        etcd.set_up(at(0), 2, false);
        assert!(!etcd.elect(at(1_500_000)).0 && etcd.take(at(1_500_000), 1, 1).is_none());
        etcd.set_up(at(2_000_000), 2, true);
        assert!(etcd.elect(at(3_000_000)).0 && etcd.take(at(3_000_000), 1, 1).is_some());
        // A leader that is well again before anybody noticed goes on with what it had.
        etcd.set_islands(at(4_000_000), |member| member);
        etcd.take(at(4_000_000), etcd.leader().unwrap(), 2).unwrap();
        assert_eq!(done(&mut etcd, 4_500_000), [1; 0]);
        etcd.set_islands(at(4_500_000), |_| 0);
        assert!(!etcd.elect(at(5_000_000)).0);
        assert_eq!(done(&mut etcd, 5_000_000), [1, 2]);
    }
}
