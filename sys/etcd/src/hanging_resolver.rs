//! Name resolver for tests whose lookups block until the test releases them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use suimon_lookups::Lookups;

/// Resolver whose lookups block until [`Resolver::respond`] is called.
pub(crate) struct Resolver {
    lookups: Lookups,
    lookups_started: Arc<AtomicUsize>,
    responds: Arc<(Mutex<bool>, Condvar)>,
}

impl Resolver {
    pub(crate) fn hanging() -> Self {
        let (started, responds) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let (count, gate): (_, Arc<(Mutex<bool>, Condvar)>) =
            (Arc::clone(&started), Arc::clone(&responds));
        let lookups = Lookups::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            let open = gate.0.lock().unwrap();
            drop(gate.1.wait_while(open, |is_open| !*is_open).unwrap());
            Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))])
        });
        Self { lookups, lookups_started: started, responds }
    }

    pub(crate) fn lookups(&self) -> Lookups {
        self.lookups.clone()
    }

    /// Returns the number of lookups that have started.
    pub(crate) fn begun(&self) -> usize {
        self.lookups_started.load(Ordering::SeqCst)
    }

    /// Returns the number of threads that execute lookups.
    pub(crate) fn threads(&self) -> usize {
        self.lookups.in_progress()
    }

    /// Completes all blocked lookups, and every later one at once.
    pub(crate) fn respond(&self) {
        *self.responds.0.lock().unwrap() = true;
        self.responds.1.notify_all();
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.respond();
    }
}

pub(crate) fn wait_for(description: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < limit, "timeout while waiting for: {description}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
