//! Model of etcd's members: leadership and processing of requests.
//!
//! - A request goes from the member that received it to the leader (`peer_us` if that is another
//!   member). The leader processes requests sequentially, `write_us` each. A request is complete
//!   when it is on the disks of a majority: `sync_us` and twice `peer_us` later. Reads are
//!   linearizable and take the same path, as do keep-alives of leases.
//! - A leader without a majority completes nothing, and arriving requests are queued. After
//!   `election_ms` up to twice that time it loses leadership, and a member of a connected majority
//!   is elected, if there is one. Of the requests that arrived before the loss of the majority, the
//!   first ones may still be completed and the others are lost, without a response: the outcome is
//!   unknown. Requests without a leader are rejected.
//! - A leader with 5000 queued requests rejects further ones, as etcd does when too many entries
//!   are committed but not applied.
//! - A new leader restarts the duration of all leases.
//! - A failed member does not respond, and its clients notice immediately. A member that cannot
//!   reach the leader continues without delivering changes.
//!
//! Parameters: `election_ms` is etcd's default (etcd.io, "Tuning"). The others reproduce the values
//! of etcd.io under "Performance" for three members in one location: less than 1 ms per request
//! under light load, and more than 30 000 requests per second.

use std::collections::VecDeque;

use serde::Deserialize;
use suimon_quantity::Time;
use suimon_sim_kernel::RandomStream;

/// Largest number of queued requests: `maxGapBetweenApplyAndCommitIndex` of etcd.
const BEHIND_MAX: usize = 5000;

/// Parameters of the model of etcd.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EtcdSpec {
    pub(crate) members: u32,
    pub(crate) write_us: u64,
    pub(crate) sync_us: u64,
    pub(crate) peer_us: u64,
    pub(crate) election_ms: u64,
    /// Duration in s of the lease with which a node leads stores.
    pub(crate) session_s: u64,
    /// Time limit in ms of a node for a response of etcd.
    #[serde(rename = "patience_ms")]
    pub(crate) response_timeout_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct MemberState {
    is_up: bool,
    /// Number of the network partition. Members in the same one can communicate.
    island: u32,
}

/// Request that the leader has received and that is not complete yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogEntry {
    pub(crate) call: u64,
    /// Member that received the request.
    pub(crate) member: u32,
    /// Time at which the request is complete if the leader then has a majority.
    pub(crate) completes_at: Time,
    taken: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct Etcd {
    spec: EtcdSpec,
    members: Vec<MemberState>,
    leader: Option<u32>,
    log: VecDeque<LogEntry>,
    busy: Time,
    /// Time at which the leader lost its majority; `None` while it has one.
    lost: Option<Time>,
    /// Slowdown: its end, and the duration of operations in percent of the usual one.
    slow: (Time, u64),
    random: RandomStream,
}

impl Etcd {
    pub(crate) fn new(spec: EtcdSpec, random: RandomStream) -> Self {
        Self {
            members: vec![MemberState { is_up: true, island: 0 }; spec.members as usize],
            spec,
            leader: Some(0),
            log: VecDeque::new(),
            busy: Time::ZERO,
            lost: None,
            slow: (Time::ZERO, 100),
            random,
        }
    }

    pub(crate) const fn leader(&self) -> Option<u32> {
        self.leader
    }

    pub(crate) fn is_up(&self, member: u32) -> bool {
        self.members[member as usize].is_up
    }

    /// Returns true if there is a leader with a majority.
    pub(crate) fn is_available(&self) -> bool {
        self.leader.is_some_and(|leader| self.is_majority(leader))
    }

    /// Returns true if a member delivers changes to watching nodes: it reaches a leader with a
    /// majority.
    pub(crate) fn delivers_changes(&self, member: u32) -> bool {
        self.is_available() && self.leader.is_some_and(|leader| self.reaches(leader, member))
    }

    fn reaches(&self, first: u32, other: u32) -> bool {
        let (first, other) = (self.members[first as usize], self.members[other as usize]);
        first.is_up && other.is_up && first.island == other.island
    }

    fn is_majority(&self, leader: u32) -> bool {
        let reachable =
            (0..self.spec.members).filter(|member| self.reaches(leader, *member)).count();
        reachable * 2 > self.members.len()
    }

    fn times(&self, now: Time, us: u64) -> u64 {
        let percent = if now < self.slow.0 { self.slow.1 } else { 100 };
        us * 10 * percent
    }

    /// Receives a request at a member. Returns the time at which it may be complete; `None` if it
    /// is rejected.
    pub(crate) fn receive_request(&mut self, now: Time, member: u32, call: u64) -> Option<Time> {
        let leader = self.leader.filter(|leader| self.reaches(*leader, member))?;
        if self.log.len() >= BEHIND_MAX {
            return None;
        }
        let hop = if leader == member { 0 } else { self.times(now, self.spec.peer_us) };
        self.busy = self.busy.max(Time::from_ns(now.as_ns() + hop));
        self.busy = Time::from_ns(self.busy.as_ns() + self.times(now, self.spec.write_us));
        let after = self.times(now, self.spec.sync_us + 2 * self.spec.peer_us);
        let last = self.log.back().map_or(Time::ZERO, |last| last.completes_at);
        let done_at = Time::from_ns(self.busy.as_ns() + after).max(last);
        self.log.push_back(LogEntry { call, member, completes_at: done_at, taken: now });
        Some(done_at)
    }

    /// Removes and returns the next request that is complete at `now`; `None` if there is none, or
    /// no leader with a majority.
    pub(crate) fn pop_completed(&mut self, now: Time) -> Option<LogEntry> {
        if !self.is_available() {
            return None;
        }
        self.log.front().filter(|first| first.completes_at <= now)?;
        self.log.pop_front()
    }

    /// Slows all operations until a time, to `percent` of their usual duration.
    pub(crate) fn slow_down(&mut self, until: Time, percent: u64) {
        self.slow = (until, percent);
    }

    /// Ends a slowdown. Returns the new completion times of queued requests.
    pub(crate) fn end_slowdown(&mut self, now: Time) -> Vec<Time> {
        if now < self.slow.0 {
            return Vec::new();
        }
        self.busy = now;
        let (write, after) = (self.spec.write_us, self.spec.sync_us + 2 * self.spec.peer_us);
        for entry in &mut self.log {
            self.busy = Time::from_ns(self.busy.as_ns() + write * 1000);
            entry.completes_at =
                entry.completes_at.min(Time::from_ns(self.busy.as_ns() + after * 1000));
        }
        self.log.iter().map(|entry| entry.completes_at).collect()
    }

    /// Sets whether a member works or has failed.
    pub(crate) fn set_member_up(&mut self, now: Time, member: u32, is_up: bool) {
        self.members[member as usize].is_up = is_up;
        self.update(now);
    }

    /// Partitions the network between members. Members with the same number of `islands` can
    /// communicate.
    pub(crate) fn set_partitions(&mut self, now: Time, islands: impl Fn(u32) -> u32) {
        for (member, state) in (0..).zip(&mut self.members) {
            state.island = islands(member);
        }
        self.update(now);
    }

    fn update(&mut self, now: Time) {
        self.lost = if self.is_available() { None } else { self.lost.or(Some(now)) };
    }

    /// Draws the time in ns from the loss of a leader to the election of a new one.
    pub(crate) fn draw_election_ns(&mut self) -> u64 {
        let ns = self.spec.election_ms * 1_000_000;
        ns + self.random.draw_below(ns + 1)
    }

    /// Holds an election if there is no leader with a majority. Returns true if a leader was
    /// elected, and the numbers of the calls that were lost with the former leader and receive no
    /// response.
    pub(crate) fn elect(&mut self, now: Time) -> (bool, Vec<u64>) {
        if self.is_available() {
            return (false, Vec::new());
        }
        let able = (0..self.spec.members).filter(|member| self.is_majority(*member));
        let able: Vec<u32> = able.collect();
        self.leader = None;
        let lost = self.lost.unwrap_or(now);
        let before = self.log.iter().take_while(|entry| entry.taken <= lost).count();
        // Without a majority no leader is elected. The log is kept for a later election.
        if able.is_empty() {
            return (false, Vec::new());
        }
        let kept_count = self.random.draw_below(before as u64 + 1) as usize;
        let lost_calls = self.log.drain(kept_count..).map(|entry| entry.call).collect();
        for entry in &mut self.log {
            entry.completes_at = now;
        }
        self.busy = now;
        self.leader = Some(able[self.random.draw_below(able.len() as u64) as usize]);
        self.update(now);
        (true, lost_calls)
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
            response_timeout_ms: 2000,
        };
        Etcd::new(spec, RandomStream::new(seed, "etcd"))
    }

    fn time_at_us(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    fn completed_calls(etcd: &mut Etcd, us: u64) -> Vec<u64> {
        std::iter::from_fn(|| etcd.pop_completed(time_at_us(us))).map(|entry| entry.call).collect()
    }

    #[test]
    fn latency_and_rate_of_requests_equal_the_published_values() {
        let mut etcd = etcd(1);
        let first_done = etcd.receive_request(time_at_us(0), 1, 0).unwrap();
        assert!(first_done < time_at_us(1000), "less than a millisecond: {first_done}");
        let mut count = completed_calls(&mut etcd, 1000).len();
        for call in 1..30_000 {
            let us = 1000 + call * 33;
            etcd.receive_request(time_at_us(us), 0, call).unwrap();
            count += completed_calls(&mut etcd, us).len();
        }
        count += completed_calls(&mut etcd, 1_001_000).len();
        assert_eq!(count, 30_000, "a second");
        // The queue is bounded.
        let accepted = (0..)
            .take_while(|call| etcd.receive_request(time_at_us(1_001_000), 0, *call).is_some())
            .count();
        assert_eq!(accepted, BEHIND_MAX);
    }

    #[test]
    fn requests_of_a_slowdown_are_completed_soon_after_its_end() {
        let mut etcd = etcd(1);
        etcd.slow_down(time_at_us(1_000_000), 100_000);
        let last = (0..100)
            .map(|call| etcd.receive_request(time_at_us(0), 0, call).unwrap())
            .max()
            .unwrap();
        assert!(last > time_at_us(3_000_000), "{last}");
        assert_eq!(
            completed_calls(&mut etcd, 1_000_000).len(),
            16,
            "30 ms each, and half a second until the first"
        );
        let last = etcd.end_slowdown(time_at_us(1_000_000)).into_iter().max().unwrap();
        assert!(last < time_at_us(1_004_000), "{last}");
    }

    #[test]
    fn a_leader_without_a_majority_completes_nothing_until_the_next_election() {
        let (mut kept_entries, mut lost_entries) = (0, 0);
        for seed in 0..50 {
            let mut etcd = etcd(seed);
            for call in 0..4 {
                etcd.receive_request(time_at_us(0), 0, call).unwrap();
            }
            etcd.set_partitions(time_at_us(10), |member| u32::from(member != 0));
            // Neither the old leader nor the other members have noticed the partition yet.
            assert!(
                etcd.receive_request(time_at_us(20), 0, 9).is_some()
                    && etcd.receive_request(time_at_us(20), 1, 8).is_none()
            );
            assert_eq!(completed_calls(&mut etcd, 2_000_000), [0; 0]);
            assert!(!etcd.delivers_changes(0) && !etcd.delivers_changes(1));
            let (is_new, dropped) = etcd.elect(time_at_us(2_000_000));
            assert!(is_new && etcd.leader() != Some(0) && dropped.contains(&9), "{dropped:?}");
            assert!(etcd.delivers_changes(1) && !etcd.delivers_changes(0));
            let after = completed_calls(&mut etcd, 2_000_000);
            assert_eq!(after, (0..after.len() as u64).collect::<Vec<_>>(), "the first of them");
            (kept_entries, lost_entries) =
                (kept_entries + after.len(), lost_entries + dropped.len());
        }
        assert!(kept_entries > 50 && lost_entries > 50, "{kept_entries} and {lost_entries}");
    }

    #[test]
    fn no_leader_is_elected_without_a_majority() {
        let mut etcd = etcd(1);
        etcd.set_member_up(time_at_us(0), 0, false);
        etcd.set_member_up(time_at_us(0), 2, false);
        assert!(
            !etcd.elect(time_at_us(1_500_000)).0
                && etcd.receive_request(time_at_us(1_500_000), 1, 1).is_none()
        );
        etcd.set_member_up(time_at_us(2_000_000), 2, true);
        assert!(
            etcd.elect(time_at_us(3_000_000)).0
                && etcd.receive_request(time_at_us(3_000_000), 1, 1).is_some()
        );
        // A leader that regains its majority before an election continues with its log.
        etcd.set_partitions(time_at_us(4_000_000), |member| member);
        etcd.receive_request(time_at_us(4_000_000), etcd.leader().unwrap(), 2).unwrap();
        assert_eq!(completed_calls(&mut etcd, 4_500_000), [1; 0]);
        etcd.set_partitions(time_at_us(4_500_000), |_| 0);
        assert!(!etcd.elect(time_at_us(5_000_000)).0);
        assert_eq!(completed_calls(&mut etcd, 5_000_000), [1, 2]);
    }
}
