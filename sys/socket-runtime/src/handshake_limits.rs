//! Limits on the CPU time that TLS handshakes of clients cost.
//!
//! Beginning a handshake costs a client microseconds. It costs the server a signature, which takes
//! up to some milliseconds. Each peer may therefore begin handshakes at a limited rate only. Of the
//! handshakes of all clients, one is computed at a time, so that other threads of the runtime can
//! serve other clients.
//!
//! The clients of a peer are queued in the order of their requests. A handshake uses a token of its
//! peer when its computation begins, and not before: a client that disconnects while it is queued
//! uses none, and delays no client behind it.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::Semaphore;

/// Burst of handshakes that a peer may begin. Exceeds one handshake for each of 100 disks after a
/// restart.
pub const HANDSHAKES_BURST: u32 = 256;
/// Handshakes per second that a peer may begin beyond the burst.
pub const HANDSHAKES_PER_SECOND: u32 = 32;
/// Maximum number of peers with a separate limit. Further peers share one limit.
pub const HANDSHAKE_PEERS_MAX: usize = 1024;

/// Limits of TLS handshakes, shared by one or more listeners. Clones share the same limits.
#[derive(Clone, Debug)]
pub struct HandshakeLimits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    counted_since: Instant,
    peers: Mutex<Peers>,
    computing: Semaphore,
}

/// Token buckets of peers.
#[derive(Debug, Default)]
struct Peers {
    buckets: BTreeMap<IpAddr, Arc<Bucket>>,
    /// Bucket shared by all peers without a separate one.
    others: Arc<Bucket>,
}

/// Token bucket of a peer, stored as the time at which it is full, and the queue of the peer's
/// clients that need a token.
#[derive(Debug, Default)]
struct Bucket {
    /// Time at which the bucket is full, since the creation of the limits. Methods receive the
    /// current time as an argument.
    refilled_at: Mutex<Duration>,
    /// Lock held by the first client of the queue.
    queue: tokio::sync::Mutex<()>,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        let (started_at, peers) = (Instant::now(), Mutex::default());
        Self(Arc::new(Shared { counted_since: started_at, peers, computing: Semaphore::new(1) }))
    }
}

impl HandshakeLimits {
    /// Performs a TLS handshake with a client at a TCP address as soon as the limits permit it.
    /// `socket` is a descriptor of the client's socket, on which the client has sent data.
    /// `handshake` must not block: while it is polled, no other handshake is polled. Calls `note`
    /// with true when the client begins to wait for the limits, and with false when the handshake
    /// waits for the client or has ended.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the client disconnected before the handshake began,
    /// otherwise the error of the handshake.
    pub async fn run<T>(
        &self,
        peer: IpAddr,
        socket: OwnedFd,
        handshake: impl Future<Output = io::Result<T>>,
        mut note: impl FnMut(bool),
    ) -> io::Result<T> {
        let shared = &self.0;
        note(true);
        let bucket = shared.lock().bucket(network(peer), shared.now());
        let first_of_peer = bucket.queue.lock().await;
        loop {
            check_connected(socket.as_fd())?;
            let wait = bucket.wait(shared.now());
            if wait.is_zero() {
                break;
            }
            tokio::time::sleep(wait).await;
        }
        let mut computing = shared.computing.acquire().await;
        check_connected(socket.as_fd())?;
        bucket.take(shared.now());
        drop((first_of_peer, socket));
        let mut handshake = pin!(handshake);
        loop {
            let polled = poll_fn(|context| Poll::Ready(handshake.as_mut().poll(context))).await;
            drop(computing);
            note(false);
            match polled {
                Poll::Ready(output) => return output,
                // The future of the handshake wakes the task when it can proceed.
                Poll::Pending => next_wake().await,
            }
            note(true);
            computing = shared.computing.acquire().await;
        }
    }
}

/// Completes when the task is woken for the next time.
async fn next_wake() {
    let mut is_woken = false;
    poll_fn(|_| match std::mem::replace(&mut is_woken, true) {
        false => Poll::Pending,
        true => Poll::Ready(()),
    })
    .await;
}

/// Checks that the client has not closed its side of the connection. A client that does so before
/// the end of the handshake cannot complete it.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`]: the client has disconnected.
fn check_connected(socket: BorrowedFd<'_>) -> io::Result<()> {
    let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
    // Hang-ups and errors are always reported.
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(1..) => {
            let text = "the client has disconnected before its TLS handshake";
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
        }
        _ => Ok(()),
    }
}

/// Returns the address under which a peer's bucket is stored. A client may use all IPv6 addresses
/// of a /64 network (RFC 4291, section 2.5.4), so that these share one limit.
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

    fn now(&self) -> Duration {
        self.counted_since.elapsed()
    }
}

impl Peers {
    /// Returns the bucket of a peer at `now`. A new one replaces a full bucket without queued
    /// clients if the maximum number exists, or is the shared one if there is none of these.
    fn bucket(&mut self, peer: IpAddr, now: Duration) -> Arc<Bucket> {
        if let Some(bucket) = self.buckets.get(&peer) {
            return Arc::clone(bucket);
        }
        if self.buckets.len() >= HANDSHAKE_PEERS_MAX {
            self.buckets
                .retain(|_, bucket| Arc::strong_count(bucket) > 1 || *bucket.full_at() > now);
        }
        if self.buckets.len() >= HANDSHAKE_PEERS_MAX {
            return Arc::clone(&self.others);
        }
        Arc::clone(self.buckets.entry(peer).or_default())
    }
}

impl Bucket {
    /// Time in which one token is added to a bucket.
    const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / HANDSHAKES_PER_SECOND as u64);

    fn full_at(&self) -> MutexGuard<'_, Duration> {
        self.refilled_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time until the bucket has a token; zero if it has one.
    fn wait(&self, now: Duration) -> Duration {
        let full_at = (*self.full_at()).max(now) + Self::INTERVAL;
        full_at.saturating_sub(Self::INTERVAL * HANDSHAKES_BURST).saturating_sub(now)
    }

    /// Removes a token from the bucket.
    fn take(&self, now: Duration) {
        let mut full_at = self.full_at();
        *full_at = (*full_at).max(now) + Self::INTERVAL;
    }
}

#[cfg(test)]
#[path = "handshake_limits_tests.rs"]
mod tests;
