//! Limits on the CPU time that TLS handshakes of clients cost.
//!
//! Beginning a handshake costs a client microseconds. It costs the server a signature, which takes
//! up to some milliseconds. Each peer may therefore begin handshakes at a limited rate only. Of the
//! handshakes of all clients, one is computed at a time, so that other threads of the runtime can
//! serve other clients.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// Burst of handshakes that a peer may begin. Exceeds one handshake for each of 100 disks after a
/// restart.
pub const HANDSHAKES_BURST: u32 = 256;
/// Handshakes per second that a peer may begin beyond the burst.
pub const HANDSHAKES_PER_SECOND: u32 = 32;
/// Maximum number of peers with a separate limit. Further peers share one limit.
pub const HANDSHAKE_PEERS_MAX: usize = 1024;

/// Limits of the handshakes of one or more listeners. Clones refer to the same limits.
#[derive(Clone, Debug)]
pub struct HandshakeLimits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    begun: Instant,
    peers: Mutex<Peers>,
    computing: Semaphore,
}

/// Token buckets in the form of a virtual schedule. For each peer, the time at which its bucket is
/// full is stored, counted from the creation of the limits. No clock is read: time is an argument.
#[derive(Debug, Default)]
struct Peers {
    full_at: BTreeMap<IpAddr, Duration>,
    /// Bucket of all peers without a separate one.
    others: Duration,
}

/// Reserved start of a handshake. If it is dropped before its time, the token is returned.
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
    /// Performs a handshake with a peer at a TCP address. It begins when the limits permit it.
    /// `handshake` must not block: while it is polled, no other handshake is polled.
    pub async fn run<F: Future>(&self, peer: IpAddr, handshake: F) -> F::Output {
        self.wait_turn(network(peer)).await;
        let mut handshake = pin!(handshake);
        loop {
            let computing = self.0.computing.acquire().await;
            let polled = poll_fn(|context| Poll::Ready(handshake.as_mut().poll(context))).await;
            drop(computing);
            match polled {
                Poll::Ready(output) => return output,
                // The future of the handshake wakes the task when it can proceed.
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

/// Waits until the task is woken.
async fn next_wake() {
    let mut is_woken = false;
    poll_fn(|_| match std::mem::replace(&mut is_woken, true) {
        false => Poll::Pending,
        true => Poll::Ready(()),
    })
    .await;
}

/// Returns the address that identifies a peer for its limit. A client may use all IPv6 addresses of
/// a /64 network (RFC 4291, section 2.5.4), so these share one limit.
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
