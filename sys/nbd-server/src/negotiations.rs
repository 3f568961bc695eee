//! Limits on concurrent negotiations, per peer and for all servers of a host.
//!
//! Any client that can connect can begin negotiations without completing them. These must not delay
//! other clients, so a new negotiation always begins at once, and may replace an existing one:
//! - If its peer has [`PEER_REPLACEMENT_THRESHOLD`] negotiations, the oldest silent one of this
//!   peer is replaced.
//! - If the host has [`HOST_REPLACEMENT_THRESHOLD`] negotiations, the oldest silent one of the peer
//!   with the most negotiations is replaced.
//!
//! A negotiation is silent after [`SILENT_AFTER`] without bytes from the client. Many clients that
//! connect at once, for example after a restart of the daemon, are not silent, and may exceed these
//! limits up to [`PEER_LIMIT`] and [`HOST_LIMIT`]. At these peaks, the oldest negotiation is
//! replaced in any case. Negotiations in which the client has sent nothing are replaced before all
//! others. Clients that presented a certificate are never replaced. Below the peaks, clients whose
//! TLS handshake is queued are not replaced either.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::origin::Origin;

/// Number of concurrent negotiations of one peer at which a new one replaces the oldest silent one.
pub(crate) const PEER_REPLACEMENT_THRESHOLD: usize = 32;
/// Maximum number of concurrent negotiations of one peer.
pub(crate) const PEER_LIMIT: usize = 256;
/// Number of concurrent negotiations on the host at which a new one replaces a silent one of the
/// peer with the most negotiations.
pub(crate) const HOST_REPLACEMENT_THRESHOLD: usize = 128;
/// Maximum number of concurrent negotiations on the host.
pub(crate) const HOST_LIMIT: usize = 512;
/// Time without bytes of the client after which a negotiation is silent.
pub(crate) const SILENT_AFTER: Duration = Duration::from_millis(250);

/// Negotiations in progress of the servers of a host. Clones share the same negotiations.
#[derive(Clone, Default)]
pub(crate) struct Negotiations(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

struct Entry {
    origin: Origin,
    /// True if the client has sent any bytes.
    has_sent: bool,
    /// Time at which the client last sent bytes; initially, the start of the negotiation.
    active: Instant,
    is_authenticated: bool,
    /// True while the negotiation waits for the server, so that the client cannot send anything.
    is_waiting: bool,
    /// Sender of the signal that the negotiation is replaced.
    evict: watch::Sender<bool>,
}

/// Registration of a negotiation in progress, which counts towards the limits until it is dropped.
pub(crate) struct NegotiationEntry {
    handshakes: Negotiations,
    number: u64,
    pub(crate) replacement_signal: ReplacementSignal,
}

/// Handle of a negotiation for its TLS handshake. The negotiation may have ended.
#[derive(Clone)]
pub(crate) struct NegotiationHandle {
    handshakes: Negotiations,
    number: u64,
}

/// Receiver of the signal that a negotiation is replaced.
#[derive(Clone, Debug)]
pub(crate) struct ReplacementSignal(watch::Receiver<bool>);

impl Negotiations {
    /// Registers a negotiation that `origin` begins at `now`, and replaces another one if a limit
    /// is reached. Returns `None`, so that the client must be rejected, if a peak is reached and
    /// every client has presented a certificate.
    pub(crate) fn begin(&self, origin: Origin, now: Instant) -> Option<NegotiationEntry> {
        let mut handshakes = self.lock();
        let of_peer = handshakes.entries.values().filter(|entry| entry.origin == origin).count();
        if of_peer >= PEER_REPLACEMENT_THRESHOLD {
            let since = (of_peer < PEER_LIMIT).then_some(now);
            handshakes.make_room(Some(origin), since)?;
        }
        if handshakes.entries.len() >= HOST_REPLACEMENT_THRESHOLD {
            let since = (handshakes.entries.len() < HOST_LIMIT).then_some(now);
            let peer = handshakes.peer_with_most(since);
            handshakes.make_room(peer, since)?;
        }
        let number = handshakes.next;
        handshakes.next += 1;
        let (evict, evicted) = watch::channel(false);
        let entry = Entry {
            origin,
            has_sent: false,
            active: now,
            is_authenticated: false,
            is_waiting: false,
            evict,
        };
        handshakes.entries.insert(number, entry);
        Some(NegotiationEntry {
            handshakes: self.clone(),
            number,
            replacement_signal: ReplacementSignal(evicted),
        })
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    /// Replaces the oldest negotiation of `peer`, or of any peer if it is `None`, that is silent at
    /// `now`. If `now` is `None` (a peak is reached), replaces the oldest one even if it is not
    /// silent. Returns `None` if a replacement is necessary but impossible.
    fn make_room(&mut self, peer: Option<Origin>, now: Option<Instant>) -> Option<()> {
        let of_peer = self.replaceable(now).filter(|(_, entry)| Some(entry.origin) == peer);
        let oldest = of_peer.min_by_key(|(number, entry)| (entry.has_sent, entry.active, *number));
        match oldest.map(|(number, _)| number) {
            Some(number) => {
                let entry = self.entries.remove(&number)?;
                entry.evict.send_replace(true);
                Some(())
            }
            None => now.map(|_| ()),
        }
    }

    /// Returns the peer with the most negotiations that may be replaced. If several peers have the
    /// same number, returns the one with the oldest negotiation.
    fn peer_with_most(&self, now: Option<Instant>) -> Option<Origin> {
        let mut peers: BTreeMap<Origin, (usize, u64)> = BTreeMap::new();
        for (number, entry) in self.replaceable(now) {
            peers.entry(entry.origin).or_insert((0, number)).0 += 1;
        }
        let busiest =
            peers.into_iter().max_by_key(|(_, (count, oldest))| (*count, Reverse(*oldest)));
        busiest.map(|(peer, _)| peer)
    }

    /// Returns number and entry of each negotiation that may be replaced: those silent at `now`, or
    /// if it is `None` (a peak is reached) all.
    fn replaceable(&self, now: Option<Instant>) -> impl Iterator<Item = (u64, &Entry)> {
        let is_silent = move |entry: &Entry| {
            now.is_none_or(|now| {
                !entry.is_waiting && now.saturating_duration_since(entry.active) >= SILENT_AFTER
            })
        };
        let entries = self.entries.iter().map(|(number, entry)| (*number, entry));
        entries.filter(move |(_, entry)| !entry.is_authenticated && is_silent(entry))
    }
}

impl NegotiationEntry {
    /// Records that the client has sent bytes.
    pub(crate) fn handle_bytes(&self, now: Instant) {
        if let Some(entry) = self.handshakes.lock().entries.get_mut(&self.number) {
            entry.has_sent = true;
            entry.active = now;
        }
    }

    /// Returns a handle of the negotiation for its TLS handshake.
    pub(crate) fn handle(&self) -> NegotiationHandle {
        NegotiationHandle { handshakes: self.handshakes.clone(), number: self.number }
    }

    /// Records that the client presented a certificate, which protects the negotiation from
    /// replacement.
    pub(crate) fn handle_authenticated(&self) {
        if let Some(entry) = self.handshakes.lock().entries.get_mut(&self.number) {
            entry.is_authenticated = true;
        }
    }
}

impl NegotiationHandle {
    /// Records whether the negotiation waits for the server. The client counts as silent from the
    /// end of that time at the earliest.
    pub(crate) fn set_waiting_for_server(&self, is_waiting: bool, now: Instant) {
        if let Some(entry) = self.handshakes.lock().entries.get_mut(&self.number) {
            entry.is_waiting = is_waiting;
            entry.active = now;
        }
    }
}

impl Drop for NegotiationEntry {
    fn drop(&mut self) {
        self.handshakes.lock().entries.remove(&self.number);
    }
}

impl ReplacementSignal {
    /// Waits until the negotiation is replaced. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        if self.0.wait_for(|is_evicted| *is_evicted).await.is_err() {
            // The negotiation has ended.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
#[path = "negotiations_tests.rs"]
mod tests;
