//! Resolution of the names of members, with a bounded number of threads.
//!
//! getaddrinfo(3) blocks until the resolver responds, and cannot be cancelled. A lookup therefore
//! has a thread, which continues after its caller has stopped waiting. While the resolver does not
//! respond, each attempt to connect begins another lookup, also those of connections that replace a
//! failed one. The limits are therefore those of the process, not of a connection.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use tokio::sync::oneshot::{Receiver, channel};

/// Maximum number of lookups in progress, each with a thread.
pub(crate) const LOOKUPS_MAX: usize = 16;
/// Maximum number of lookups of one name in progress. Less than [`LOOKUPS_MAX`], so that names
/// whose lookups hang leave threads for others, such as those in `/etc/hosts`.
pub(crate) const LOOKUPS_PER_NAME_MAX: usize = 4;

/// Function that resolves a name, and blocks meanwhile.
type LookUp = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Lookups of a process. Clones refer to the same lookups.
#[derive(Clone)]
pub(crate) struct Lookups(Arc<Shared>);

struct Shared {
    look_up: Box<LookUp>,
    /// Number of lookups in progress by name; at least 1.
    in_progress: Mutex<BTreeMap<String, usize>>,
}

/// Lookup that counts towards the limits until it is dropped.
struct Lookup {
    lookups: Lookups,
    name: String,
}

impl Lookups {
    /// Returns the lookups of this process.
    pub(crate) fn of_process() -> Self {
        static LOOKUPS: OnceLock<Lookups> = OnceLock::new();
        let look_up = |name: &str| Ok((name, 0).to_socket_addrs()?.collect());
        LOOKUPS.get_or_init(|| Self::new(look_up)).clone()
    }

    /// Creates lookups that use another function. Its addresses may have any port.
    pub(crate) fn new(
        look_up: impl Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Shared { look_up: Box::new(look_up), in_progress: Mutex::default() }))
    }

    /// Returns the addresses of a name. If the future is dropped, the lookup continues.
    ///
    /// # Errors
    /// The name does not exist, the resolver has failed, or too many lookups are in progress.
    pub(crate) async fn resolve(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        let ended = || io::Error::other("the thread that resolved the name has panicked");
        self.begin(name)?.await.unwrap_or_else(|_| Err(ended()))
    }

    fn begin(&self, name: &str) -> io::Result<Receiver<io::Result<Vec<SocketAddr>>>> {
        let lookup = self.enter(name)?;
        let (report, result) = channel();
        thread::Builder::new().name("suimon-lookup".to_owned()).spawn(move || {
            let addresses = (lookup.lookups.0.look_up)(&lookup.name);
            // The caller may have stopped waiting.
            let _ = report.send(addresses);
        })?;
        Ok(result)
    }

    fn enter(&self, name: &str) -> io::Result<Lookup> {
        let mut in_progress = self.lock();
        let of_name = in_progress.get(name).copied().unwrap_or_default();
        let all: usize = in_progress.values().sum();
        if of_name >= LOOKUPS_PER_NAME_MAX || all >= LOOKUPS_MAX {
            let text = format!(
                "{all} lookups of names of etcd members have not ended, {of_name} of them of \
                 {name}; check the resolver of this host (/etc/resolv.conf, /etc/nsswitch.conf), \
                 or use IP addresses in `endpoints`"
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
#[path = "lookups_tests.rs"]
pub(crate) mod tests;
