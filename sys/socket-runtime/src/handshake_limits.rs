//! Limits on the CPU time that TLS handshakes of clients cost.
//!
//! A client that begins a handshake spends microseconds, and the server a signature of up to some
//! milliseconds. Each peer therefore begins handshakes at a limited rate, and one handshake of all
//! clients is computed at a time, so that the other threads of the runtime serve other clients.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// Handshakes that a peer may begin at once: more than one for each of 100 disks after a restart.
pub const HANDSHAKES_BURST: u32 = 256;
/// Handshakes per second that a peer may begin beyond that.
pub const HANDSHAKES_PER_SECOND: u32 = 32;
/// Maximum number of peers with a limit of their own. Further ones share one limit.
pub const HANDSHAKE_PEERS_MAX: usize = 1024;

/// Limits of the handshakes of a listener or several. Clones refer to the same limits.
#[derive(Clone, Debug)]
pub struct HandshakeLimits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    begun: Instant,
    peers: Mutex<Peers>,
    computing: Semaphore,
}

/// Token buckets in the form of a virtual schedule: each peer has the time, since the creation of
/// the limits, at which its bucket is full. Pure: time is an argument.
#[derive(Debug, Default)]
struct Peers {
    full_at: BTreeMap<IpAddr, Duration>,
    /// Bucket of peers without one of their own.
    others: Duration,
}

/// Turn of a handshake. Dropping it before its time returns the token.
struct Turn<'s> {
    shared: &'s Shared,
    peer: IpAddr,
    is_taken: bool,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        let (begun, peers) = (Instant::now(), Mutex::default());
        Self(Arc::new(Shared { begun, peers, computing: Semaphore::new(1) }))
    }
}

impl HandshakeLimits {
    /// Performs a handshake with a peer at a TCP address, when its turn has come. `handshake` must
    /// not block: while it is polled, no other handshake is.
    pub async fn run<F: Future>(&self, peer: IpAddr, handshake: F) -> F::Output {
        self.wait_turn(network(peer)).await;
        let mut handshake = pin!(handshake);
        loop {
            let computing = self.0.computing.acquire().await;
            let polled = poll_fn(|context| Poll::Ready(handshake.as_mut().poll(context))).await;
            drop(computing);
            match polled {
                Poll::Ready(output) => return output,
                // The handshake has registered the task for its next progress.
                Poll::Pending => next_wake().await,
            }
        }
    }

    async fn wait_turn(&self, peer: IpAddr) {
        let now = self.0.begun.elapsed();
        let wait = self.0.lock().take(peer, now);
        let mut turn = Turn { shared: &self.0, peer, is_taken: false };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        turn.is_taken = true;
    }
}

/// Returns when the task was woken.
async fn next_wake() {
    let mut is_woken = false;
    poll_fn(|_| match std::mem::replace(&mut is_woken, true) {
        false => Poll::Pending,
        true => Poll::Ready(()),
    })
    .await;
}

/// Returns the address by which a peer is limited: a client may use all IPv6 addresses of a network
/// of 64 bits (RFC 4291, section 2.5.4).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
        address => address,
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers {
    /// Time in which a token is added to a bucket.
    const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / HANDSHAKES_PER_SECOND as u64);

    /// Takes a token of a peer at `now`. Returns the time until the handshake may begin.
    fn take(&mut self, peer: IpAddr, now: Duration) -> Duration {
        if self.full_at.len() >= HANDSHAKE_PEERS_MAX && !self.full_at.contains_key(&peer) {
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        let is_own = self.full_at.len() < HANDSHAKE_PEERS_MAX || self.full_at.contains_key(&peer);
        let full_at = match is_own {
            true => self.full_at.entry(peer).or_default(),
            false => &mut self.others,
        };
        *full_at = (*full_at).max(now) + Self::INTERVAL;
        full_at.saturating_sub(Self::INTERVAL * HANDSHAKES_BURST).saturating_sub(now)
    }

    /// Returns a token that was not used.
    fn give_back(&mut self, peer: IpAddr) {
        let full_at = self.full_at.get_mut(&peer).unwrap_or(&mut self.others);
        *full_at = full_at.saturating_sub(Self::INTERVAL);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_taken {
            self.shared.lock().give_back(self.peer);
        }
    }
}

#[cfg(test)]
#[path = "handshake_limits_tests.rs"]
mod tests;
