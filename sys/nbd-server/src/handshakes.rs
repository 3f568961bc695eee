//! Limit of concurrent negotiations of a server, and the selection of one to end for a new client.
//!
//! Every client that reaches the socket can begin negotiations without completing them. They must
//! not lock out other clients: at the limit, a new client replaces the oldest negotiation of the
//! origin with the most. A client from another origin thus keeps its place while one origin begins
//! many. Clients that presented a certificate are not replaced, and no negotiation within
//! [`UNDISTURBED`], so that many clients that connect at once, as after a restart of the daemon,
//! wait for each other.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::time::timeout_at;

/// Maximum number of concurrent negotiations of a server.
pub(crate) const HANDSHAKES_MAX: usize = 32;
/// Time during which a negotiation is not replaced.
pub(crate) const UNDISTURBED: Duration = Duration::from_millis(250);

/// Origin of a client, such that others cannot forge it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// User id on this host.
    User(u32),
    /// IPv4 address, or the first address of a /64 network: a client may use all addresses of such
    /// a network (RFC 4291, section 2.5.4).
    Address(IpAddr),
}

impl Origin {
    pub(crate) fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                Self::Address(Ipv6Addr::from(network).into())
            }
            address => Self::Address(address),
        }
    }
}

/// Negotiations of a server. Clones refer to the same negotiations.
#[derive(Clone, Default)]
pub(crate) struct Handshakes(Arc<Shared>);

#[derive(Default)]
struct Shared {
    all: Mutex<All>,
    /// Notified when a negotiation has ended.
    ended: Notify,
}

#[derive(Default)]
struct All {
    next: u64,
    /// Entries in the order in which they began.
    entries: BTreeMap<u64, Entry>,
}

struct Entry {
    origin: Origin,
    began: Instant,
    is_authenticated: bool,
    /// `true` is sent if the negotiation is replaced.
    evict: watch::Sender<bool>,
}

/// Negotiation that counts towards the limit until it is dropped.
pub(crate) struct Handshake {
    all: Handshakes,
    number: u64,
    pub(crate) evicted: Evicted,
}

/// Signal that a negotiation was replaced.
#[derive(Clone, Debug)]
pub(crate) struct Evicted(watch::Receiver<bool>);

/// Reason why a negotiation cannot begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Busy {
    /// The oldest negotiation may be replaced at this time.
    Until(Instant),
    /// Every negotiation is of a client that presented a certificate; none may be replaced.
    Authenticated,
}

impl Handshakes {
    /// Begins a negotiation, and replaces another one at the limit. Waits at most [`UNDISTURBED`].
    /// Returns `None` if all negotiating clients presented certificates. Cancel safe.
    pub(crate) async fn begin(&self, origin: Origin) -> Option<Handshake> {
        loop {
            match self.try_begin(origin, Instant::now()) {
                Ok(handshake) => return Some(handshake),
                Err(Busy::Authenticated) => return None,
                Err(Busy::Until(then)) => {
                    let _ = timeout_at(then.into(), self.0.ended.notified()).await;
                }
            }
        }
    }

    fn try_begin(&self, origin: Origin, now: Instant) -> Result<Handshake, Busy> {
        let mut all = self.lock();
        if all.entries.len() >= HANDSHAKES_MAX {
            let (number, began) = all.oldest_of_most().ok_or(Busy::Authenticated)?;
            if now < began + UNDISTURBED {
                return Err(Busy::Until(began + UNDISTURBED));
            }
            if let Some(entry) = all.entries.remove(&number) {
                entry.evict.send_replace(true);
            }
        }
        let number = all.next;
        all.next += 1;
        let (evict, evicted) = watch::channel(false);
        let entry = Entry { origin, began: now, is_authenticated: false, evict };
        all.entries.insert(number, entry);
        Ok(Handshake { all: self.clone(), number, evicted: Evicted(evicted) })
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    /// Returns the oldest negotiation that may be replaced, of the origin with the most of them,
    /// and its start time.
    fn oldest_of_most(&self) -> Option<(u64, Instant)> {
        let mut origins: BTreeMap<Origin, (usize, u64)> = BTreeMap::new();
        for (number, entry) in self.entries.iter().filter(|(_, entry)| !entry.is_authenticated) {
            origins.entry(entry.origin).or_insert((0, *number)).0 += 1;
        }
        // Of origins with equal numbers, the one with the oldest negotiation.
        let most = origins.into_values().max_by_key(|(count, oldest)| (*count, Reverse(*oldest)));
        let (_, oldest) = most?;
        self.entries.get(&oldest).map(|entry| (oldest, entry.began))
    }
}

impl Handshake {
    /// Records that the client presented a certificate, so that it is not replaced.
    pub(crate) fn handle_authenticated(&self) {
        if let Some(entry) = self.all.lock().entries.get_mut(&self.number) {
            entry.is_authenticated = true;
        }
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.all.lock().entries.remove(&self.number);
        self.all.0.ended.notify_one();
    }
}

impl Evicted {
    /// Waits until the negotiation is replaced. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        if self.0.wait_for(|is_evicted| *is_evicted).await.is_err() {
            // The negotiation is over.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Origin {
        Origin::of_address(IpAddr::from([192, 0, 2, last]))
    }

    fn is_evicted(of: &Handshake) -> bool {
        *of.evicted.0.borrow()
    }

    /// Begins negotiations at the same time. Returns them with the time at which the first may be
    /// replaced.
    fn begun(all: &Handshakes, origins: impl Iterator<Item = u8>) -> (Vec<Handshake>, Instant) {
        let now = Instant::now();
        let begun = origins.map(|last| all.try_begin(address(last), now).ok().unwrap()).collect();
        (begun, now + UNDISTURBED)
    }

    #[test]
    fn the_oldest_of_the_origin_with_most_makes_room() {
        let all = Handshakes::default();
        let (others, _) = begun(&all, 0..28);
        let (many, then) = begun(&all, [100; 4].into_iter());
        let before = then - Duration::from_millis(1);
        assert_eq!(all.try_begin(address(100), before).err(), Some(Busy::Until(then)));
        let new = [200, 201, 100].map(|last| all.try_begin(address(last), then).ok().unwrap());
        let evicted: Vec<_> = many.iter().map(is_evicted).collect();
        // With 4 and then 3, this origin has more than others; with 2 it has more as well.
        assert_eq!(evicted, [true, true, true, false]);
        assert!(!others.iter().chain(&new).any(is_evicted));
        assert_eq!(all.lock().entries.len(), HANDSHAKES_MAX);
        // Ended negotiations free their places.
        drop((others, many));
        assert_eq!(all.lock().entries.len(), new.len());
    }

    #[test]
    fn of_origins_with_as_many_the_oldest_makes_room() {
        let all = Handshakes::default();
        let (all_begun, then) = begun(&all, 0..32);
        let _new = all.try_begin(address(40), then).ok().unwrap();
        assert!(is_evicted(&all_begun[0]) && !all_begun[1..].iter().any(is_evicted));
    }

    #[test]
    fn clients_that_have_shown_a_certificate_are_not_ended() {
        let all = Handshakes::default();
        let (shown, then) = begun(&all, 0..32);
        shown[1..].iter().for_each(Handshake::handle_authenticated);
        let next = all.try_begin(address(50), then).ok().unwrap();
        assert!(is_evicted(&shown[0]));
        next.handle_authenticated();
        assert_eq!(all.try_begin(address(51), then).err(), Some(Busy::Authenticated));
        assert!(!shown[1..].iter().any(is_evicted));
    }

    #[test]
    fn a_network_of_64_bits_is_one_origin() {
        let of = |text: &str| Origin::of_address(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:ffff:ffff:ffff"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), address(1));
    }
}
