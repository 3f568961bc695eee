use std::sync::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;

/// Resolver that responds to no lookup before [`Resolver::respond`].
pub(crate) struct Resolver {
    lookups: Lookups,
    begun: Arc<AtomicUsize>,
    responds: Arc<(Mutex<bool>, Condvar)>,
}

impl Resolver {
    pub(crate) fn hanging() -> Self {
        let (begun, responds) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let (count, gate): (_, Arc<(Mutex<bool>, Condvar)>) =
            (Arc::clone(&begun), Arc::clone(&responds));
        let lookups = Lookups::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            let open = gate.0.lock().unwrap();
            drop(gate.1.wait_while(open, |is_open| !*is_open).unwrap());
            Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))])
        });
        Self { lookups, begun, responds }
    }

    pub(crate) fn lookups(&self) -> Lookups {
        self.lookups.clone()
    }

    /// Returns the number of lookups that have begun.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Returns the number of threads that execute lookups.
    pub(crate) fn threads(&self) -> usize {
        self.lookups.lock().values().sum()
    }

    /// Responds to all lookups from now on.
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

pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < limit, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn addresses_of_a_name_are_returned_and_a_lookup_without_a_caller_counts_until_it_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let resolver = Resolver::hanging();
    let abandoned = runtime.block_on(async {
        let lookup = resolver.lookups.resolve("etcd.example");
        tokio::time::timeout(Duration::from_millis(1), lookup).await
    });
    assert!(abandoned.is_err());
    assert_eq!(resolver.threads(), 1);
    resolver.respond();
    wait_for("the end of the lookup", || resolver.threads() == 0);
    let found = runtime.block_on(resolver.lookups.resolve("etcd.example")).unwrap();
    assert_eq!(found, [SocketAddr::from(([127, 0, 0, 1], 0))]);
}

#[test]
fn names_of_the_host_are_resolved() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let found = runtime.block_on(Lookups::of_process().resolve("localhost")).unwrap();
    assert!(found.iter().any(|address| address.ip().is_loopback()), "{found:?}");
}
