//! Wrong credentials by peer: delays of responses, and reports. Pure: time is an argument.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Largest number of peers with an entry. A further peer replaces the one whose last wrong
/// credentials are the oldest.
pub(super) const PEERS_MAX: usize = 256;
/// Delay of the response to the first wrong credentials of a peer. It doubles with each further
/// response, up to [`DELAY_STEP_MAX`].
pub(super) const DELAY_STEP_INITIAL: Duration = Duration::from_millis(250);
/// Largest interval between two responses to one peer.
pub(super) const DELAY_STEP_MAX: Duration = Duration::from_secs(5);
/// Largest delay of one response, while several requests of one peer are delayed at the same time.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(10);
/// Largest delay of the response to credentials that equal the peer's last wrong ones. A client
/// with an outdated token sends it repeatedly, and must receive the response before its own time
/// limit.
pub(super) const SAME_CREDENTIALS_DELAY_MAX: Duration = Duration::from_secs(2);
/// Time without wrong credentials after which a peer's responses are no longer delayed.
pub(super) const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Time from the first wrong credentials of a peer to the first report.
pub(super) const REPORT_AFTER: Duration = Duration::from_secs(2);
/// Shortest time between two reports about one peer.
pub(super) const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Listener whose requests must have credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AuthenticatedListener {
    /// TCP listener of the API.
    Api,
    /// Listener of the web console.
    Console,
}

impl AuthenticatedListener {
    pub(super) const ALL: [Self; 2] = [Self::Api, Self::Console];

    /// Returns the section of the host file that configures the listener.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Console => "console",
        }
    }
}

/// Report about the wrong credentials of one peer, from which an event is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailureReport {
    pub(super) listener: AuthenticatedListener,
    /// Address of the peer, or the network of 64 bits for IPv6. `None` for peers without a separate
    /// entry, which are reported together.
    pub(super) peer: Option<IpAddr>,
    pub(super) count: u64,
    /// Time from the first to the last of the reported requests with wrong credentials.
    pub(super) duration: Duration,
}

/// Peers that sent wrong credentials recently.
#[derive(Debug, Default)]
pub(super) struct FailureTable {
    entries: BTreeMap<Key, Entry>,
    totals: BTreeMap<AuthenticatedListener, u64>,
}

/// Listener, and address or IPv6 network of the peer. `None` stands for all peers without an
/// address and those whose entry was replaced.
type Key = (AuthenticatedListener, Option<IpAddr>);

#[derive(Debug)]
struct Entry {
    failures: u32,
    /// Time at which the last response is sent, possibly in the future.
    round: Instant,
    last: Instant,
    /// Hash of the last wrong credentials.
    fingerprint: Option<u64>,
    pending: Option<Pending>,
    reported: Option<Instant>,
}

/// Wrong credentials of one peer since the last report.
#[derive(Clone, Copy, Debug)]
struct Pending {
    count: u64,
    first: Instant,
    last: Instant,
    due: Instant,
}

impl FailureTable {
    /// Records wrong credentials with the hash `fingerprint`. Returns the delay of the response.
    /// Responses to one peer follow each other at increasing intervals, independent of the number
    /// of its connections.
    pub(super) fn record_failure(
        &mut self,
        now: Instant,
        (listener, peer): (AuthenticatedListener, Option<IpAddr>),
        fingerprint: u64,
    ) -> Duration {
        *self.totals.entry(listener).or_default() += 1;
        let key = (listener, peer.map(network));
        self.make_room(now, key);
        let entry = self.entries.entry(key).or_insert_with(|| Entry::new(now));
        if entry.last + FORGET_AFTER <= now {
            (entry.failures, entry.round) = (0, now);
        }
        let step =
            DELAY_STEP_INITIAL.saturating_mul(1 << entry.failures.min(16)).min(DELAY_STEP_MAX);
        entry.failures = entry.failures.saturating_add(1);
        let is_same = entry.fingerprint.replace(fingerprint) == Some(fingerprint);
        let max_delay = if is_same { SAME_CREDENTIALS_DELAY_MAX } else { DELAY_MAX };
        let time = (entry.round.max(now) + step).min(now + max_delay);
        entry.round = entry.round.max(time);
        entry.last = now;
        entry.add(now, 1, (now, now));
        time - now
    }

    /// Returns the number of requests with wrong credentials at the listener since the start.
    pub(super) fn total(&self, listener: AuthenticatedListener) -> u64 {
        self.totals.get(&listener).copied().unwrap_or_default()
    }

    /// Returns the time of the next report; `None` if all wrong credentials are reported.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.entries.values().filter_map(|entry| Some(entry.pending?.due)).min()
    }

    /// Returns the reports that are due.
    pub(super) fn poll_reports(&mut self, now: Instant) -> Vec<FailureReport> {
        self.reports(now, |pending| pending.due <= now)
    }

    /// Returns reports about all wrong credentials that are not reported yet, for the end of the
    /// daemon.
    pub(super) fn take_remaining_reports(&mut self, now: Instant) -> Vec<FailureReport> {
        self.reports(now, |_| true)
    }

    fn reports(&mut self, now: Instant, is_due: impl Fn(&Pending) -> bool) -> Vec<FailureReport> {
        let mut reports = Vec::new();
        for ((listener, peer), entry) in &mut self.entries {
            let Some(pending) = entry.pending.take_if(|pending| is_due(pending)) else { continue };
            entry.reported = Some(now);
            let span = pending.last - pending.first;
            let (listener, peer) = (*listener, *peer);
            reports.push(FailureReport { listener, peer, count: pending.count, duration: span });
        }
        reports
    }

    /// Removes the entry of the peer with the oldest failure if the table is full and `key` needs a
    /// new entry. Unreported failures of the removed peer are added to the entry without an
    /// address.
    fn make_room(&mut self, now: Instant, key: Key) {
        if key.1.is_none() || self.entries.contains_key(&key) {
            return;
        }
        let peers = self.entries.iter().filter(|((_, peer), _)| peer.is_some());
        if peers.clone().count() < PEERS_MAX {
            return;
        }
        let oldest = peers.min_by_key(|(_, entry)| entry.last).map(|(key, _)| *key);
        let Some((listener, _)) = oldest else { return };
        let removed = oldest.and_then(|key| self.entries.remove(&key));
        let Some(pending) = removed.and_then(|entry| entry.pending) else { return };
        let others = self.entries.entry((listener, None)).or_insert_with(|| Entry::new(now));
        others.add(now, pending.count, (pending.first, pending.last));
    }
}

impl Entry {
    const fn new(now: Instant) -> Self {
        let (fingerprint, pending, reported) = (None, None, None);
        Self { failures: 0, round: now, last: now, fingerprint, pending, reported }
    }

    /// Adds `count` wrong credentials, received between `first` and `last`, to the next report.
    fn add(&mut self, now: Instant, count: u64, (first, last): (Instant, Instant)) {
        let after_last = self.reported.map(|reported| reported + REPORT_EVERY);
        let due = after_last.unwrap_or(now).max(now + REPORT_AFTER);
        let pending = self.pending.get_or_insert(Pending { count: 0, first, last, due });
        pending.count = pending.count.saturating_add(count);
        pending.first = pending.first.min(first);
        pending.last = pending.last.max(last);
    }
}

/// Returns the address that identifies a peer: an IPv4 address, or the first 64 bits of an IPv6
/// address, since a host chooses its addresses within this network (RFC 4291, section 2.5.4).
fn network(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V6(address) if !address.is_loopback() => {
            let host_bits = u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !host_bits))
        }
        other => other,
    }
}

/// Returns the text that denotes a peer in events: an IPv4 address or an IPv6 network.
pub(super) fn peer_text(peer: IpAddr) -> String {
    match peer {
        IpAddr::V6(address) if !address.is_loopback() => format!("{address}/64"),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
