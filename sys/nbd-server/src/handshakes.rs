//! Negotiations under way at a server: how many there may be, and which one is ended for a new client
//! if there are too many.
//!
//! Every client that reaches the socket can begin negotiations and leave them at that. They must not
//! keep other clients out: if there are too many, a new client takes the place of the oldest one of the
//! origin that has most. So a client from elsewhere keeps its place while one origin begins many.
//! Clients that have shown a certificate are not ended, and none within [`UNDISTURBED`], so that many
//! clients that connect at once, as after a restart of the daemon, wait for each other instead.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::time::timeout_at;

/// Largest number of negotiations of a server at once.
pub(crate) const HANDSHAKES_MAX: usize = 32;
/// Time for which no negotiation is ended for another client.
pub(crate) const UNDISTURBED: Duration = Duration::from_millis(250);

/// Where a client comes from, as far as others cannot come from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A user of this host.
    User(u32),
    /// An IPv4 address, or the first address of a network of 64 bits: a client has all addresses of such
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

/// Negotiations of a server. Clones are the same.
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
    /// By the order in which they began.
    entries: BTreeMap<u64, Entry>,
}

struct Entry {
    origin: Origin,
    began: Instant,
    is_authenticated: bool,
    /// `true` is sent if it is ended for another client.
    evict: watch::Sender<bool>,
}

/// A negotiation, which has its place until this is dropped.
pub(crate) struct Handshake {
    all: Handshakes,
    number: u64,
    pub(crate) evicted: Evicted,
}

/// Reports that a negotiation was ended for another client.
#[derive(Clone, Debug)]
pub(crate) struct Evicted(watch::Receiver<bool>);

/// Why a negotiation does not begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Busy {
    /// The oldest one may be ended then.
    Until(Instant),
    /// All negotiations are of clients that have shown certificates: none is ended for a new one.
    Authenticated,
}

impl Handshakes {
    /// Begins a negotiation, and ends another one if there are too many. Waits at most
    /// [`UNDISTURBED`]. `None` if all clients that negotiate have shown certificates. Cancel safe.
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
    /// Returns the oldest negotiation that may be ended, of the origin that has most of them, and when
    /// it began.
    fn oldest_of_most(&self) -> Option<(u64, Instant)> {
        let mut origins: BTreeMap<Origin, (usize, u64)> = BTreeMap::new();
        for (number, entry) in self.entries.iter().filter(|(_, entry)| !entry.is_authenticated) {
            origins.entry(entry.origin).or_insert((0, *number)).0 += 1;
        }
        // Of several with as many the one with the oldest.
        let most = origins.into_values().max_by_key(|(count, oldest)| (*count, Reverse(*oldest)));
        let (_, oldest) = most?;
        self.entries.get(&oldest).map(|entry| (oldest, entry.began))
    }
}

impl Handshake {
    /// The client has shown a certificate: it is not ended for others.
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
    /// Completes if the negotiation is ended for another client. Cancel safe.
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

    /// Negotiations that began at the same time, and when the first of them may be ended.
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
        // 4 and then 3 of this origin are more than others have; of 2 and less as well.
        assert_eq!(evicted, [true, true, true, false]);
        assert!(!others.iter().chain(&new).any(is_evicted));
        assert_eq!(all.lock().entries.len(), HANDSHAKES_MAX);
        // Places come back.
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
