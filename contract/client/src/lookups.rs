//! Resolution of the names of daemons, with a bounded number of threads.
//!
//! getaddrinfo(3) blocks until the resolver responds, and cannot be cancelled. A lookup therefore
//! occupies a thread after its caller has stopped waiting. The limits are those of the process.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of lookups in progress.
const LOOKUPS_MAX: usize = 16;
/// Maximum number of lookups of one address in progress. Less than [`LOOKUPS_MAX`], so that names
/// whose lookups hang leave threads for others.
const LOOKUPS_PER_ADDRESS_MAX: usize = 4;

static LOOKUPS: Lookups = Lookups::new();

/// Number of lookups in progress by address; at least 1.
struct Lookups(Mutex<BTreeMap<String, usize>>);

/// Lookup that counts towards the limits until it is dropped.
struct Lookup {
    lookups: &'static Lookups,
    address: String,
}

/// Returns the addresses of a host name or IP address with a port. If the future is dropped, the
/// lookup continues.
///
/// # Errors
/// The name does not exist, the resolver has failed, or too many lookups are in progress.
pub(crate) async fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    LOOKUPS.run(address, |address| Ok(address.to_socket_addrs()?.collect())).await
}

impl Lookups {
    const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    async fn run(
        &'static self,
        address: &str,
        look_up: impl FnOnce(&str) -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> io::Result<Vec<SocketAddr>> {
        let lookup = self.enter(address)?;
        let call = tokio::task::spawn_blocking(move || {
            // Dropped when the call has ended, also if the task has been dropped before.
            let lookup: Lookup = lookup;
            look_up(&lookup.address)
        });
        call.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn enter(&'static self, address: &str) -> io::Result<Lookup> {
        let mut in_progress = self.lock();
        let of_address = in_progress.get(address).copied().unwrap_or_default();
        let all: usize = in_progress.values().sum();
        if of_address >= LOOKUPS_PER_ADDRESS_MAX || all >= LOOKUPS_MAX {
            let text = format!(
                "{all} lookups of names have not ended, {of_address} of them of this one; check \
                 the resolver of this host (/etc/resolv.conf, /etc/nsswitch.conf), or use an IP \
                 address"
            );
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
        }
        in_progress.insert(address.to_owned(), of_address + 1);
        Ok(Lookup { lookups: self, address: address.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        let mut in_progress = self.lookups.lock();
        match in_progress.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(in_progress.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};

    use tokio::time::timeout;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    /// Begins a lookup that hangs until the sender of `gate` is dropped, and stops waiting for it.
    async fn hang(
        lookups: &'static Lookups,
        address: &str,
        gate: &Arc<Mutex<Receiver<()>>>,
    ) -> Option<io::Error> {
        let gate = Arc::clone(gate);
        let lookup = lookups.run(address, move |_| {
            let _ = gate.lock().unwrap().recv();
            Ok(Vec::new())
        });
        timeout(Duration::from_millis(1), lookup).await.ok()?.err()
    }

    /// The daemon connects to other nodes again and again while the resolver does not respond.
    #[test]
    fn lookups_that_hang_are_bounded_over_many_connections() {
        let lookups: &'static Lookups = Box::leak(Box::new(Lookups::new()));
        let (hold, held) = channel();
        let (runtime, gate) = (runtime(), Arc::new(Mutex::new(held)));
        runtime.block_on(async {
            for _ in 0..100 {
                hang(lookups, "a.example:443", &gate).await;
            }
            assert_eq!(lookups.lock().values().sum::<usize>(), LOOKUPS_PER_ADDRESS_MAX);
            for number in 0..100 {
                hang(lookups, &format!("node{number}.example:443"), &gate).await;
            }
            assert_eq!(lookups.lock().values().sum::<usize>(), LOOKUPS_MAX);
            let error = hang(lookups, "other.example:443", &gate).await.unwrap();
            assert!(error.to_string().contains("16 lookups"), "{error}");
        });
        drop(hold);
        // Waits for all calls in progress.
        drop(runtime);
        assert!(lookups.lock().is_empty());
    }

    #[test]
    fn names_and_addresses_are_resolved() {
        let runtime = runtime();
        for address in ["127.0.0.1:7", "[::1]:7", "localhost:7"] {
            let found = runtime.block_on(resolve(address)).unwrap();
            let is_it = |of: &SocketAddr| of.ip().is_loopback() && of.port() == 7;
            assert!(!found.is_empty() && found.iter().all(is_it), "{address}: {found:?}");
        }
    }
}
