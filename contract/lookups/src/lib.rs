//! Resolution of host names with a bounded number of threads.
//!
//! getaddrinfo(3) blocks until the resolver responds, and cannot be cancelled. A lookup therefore
//! occupies a thread of the runtime's pool for blocking calls, also after its caller has stopped
//! waiting. While the resolver does not respond, each attempt to connect begins another lookup,
//! also those of connections that replace a failed one. The limits are therefore those of the
//! process, not of a connection.
//!
//! Four names whose lookups hang reach the limit of all lookups. Until one ends, no other name is
//! resolved, also not a name in `/etc/hosts`. IP addresses are not looked up.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::task::spawn_blocking;

/// Maximum number of lookups in progress.
pub const LOOKUPS_MAX: usize = 16;
/// Maximum number of lookups of one name in progress. Less than [`LOOKUPS_MAX`], so that up to
/// three names whose lookups hang leave threads for others, such as those in `/etc/hosts`.
pub const LOOKUPS_PER_NAME_MAX: usize = 4;

/// Function that resolves a name. It blocks until the resolver responds.
type LookUp = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Name resolution with a limited number of lookups in progress. Clones share the limits.
#[derive(Clone)]
pub struct Lookups(Arc<Shared>);

struct Shared {
    look_up: Box<LookUp>,
    /// Number of lookups in progress by name; at least 1.
    in_progress: Mutex<BTreeMap<String, usize>>,
}

/// One lookup in progress. It counts towards the limits until it is dropped.
struct Lookup {
    lookups: Lookups,
    name: String,
}

impl Lookups {
    /// Returns the instance that all callers in this process share.
    #[must_use]
    pub fn process_wide() -> Self {
        static LOOKUPS: OnceLock<Lookups> = OnceLock::new();
        let look_up = |name: &str| Ok((name, 0).to_socket_addrs()?.collect());
        LOOKUPS.get_or_init(|| Self::new(look_up)).clone()
    }

    /// Creates an instance with separate limits, which resolves names by `look_up` instead of
    /// getaddrinfo(3).
    pub fn new(
        look_up: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared { look_up: Box::new(look_up), in_progress: Mutex::default() }))
    }

    /// Returns the addresses of a host name or IP address, with port 0. If the future is dropped,
    /// the lookup continues. Must be called by a task of a tokio runtime.
    ///
    /// # Errors
    /// The name does not exist, the resolver has failed, or too many lookups are in progress.
    pub async fn resolve(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = name.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, 0)]);
        }
        let lookup = self.begin(name)?;
        let call = spawn_blocking(move || {
            // Dropped when the call has ended, even if the caller dropped the future before.
            let lookup: Lookup = lookup;
            (lookup.lookups.0.look_up)(&lookup.name)
        });
        call.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Returns the number of lookups that have not ended.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.lock().values().sum()
    }

    fn begin(&self, name: &str) -> io::Result<Lookup> {
        let mut in_progress = self.lock();
        let of_name = in_progress.get(name).copied().unwrap_or_default();
        let total: usize = in_progress.values().sum();
        if of_name >= LOOKUPS_PER_NAME_MAX || total >= LOOKUPS_MAX {
            let text = format!(
                "{total} lookups of host names have not ended, {of_name} of them of {name}; check \
                 the resolver of this host (/etc/resolv.conf, /etc/nsswitch.conf), or use an IP \
                 address"
            );
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
        }
        in_progress.insert(name.to_owned(), of_name + 1);
        Ok(Lookup { lookups: self.clone(), name: name.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.in_progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lookup {
    fn drop(&mut self) {
        let mut in_progress = self.lookups.lock();
        match in_progress.get_mut(&self.name) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(in_progress.remove(&self.name)),
        }
    }
}

#[cfg(test)]
mod tests;
