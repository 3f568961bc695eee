use std::sync::mpsc::channel;
use std::time::Instant;

use super::*;
use suimon_lookups::LOOKUPS_PER_NAME_MAX;

use crate::hanging_resolver::{Resolver, wait_for};

fn store(name: &str, timeout: Duration, resolver: &Resolver) -> EtcdStore {
    let endpoints = vec![format!("http://{name}:2379")];
    let (tls, user, prefix) = (None, None, "/suimon/".to_owned());
    EtcdStore::new(
        EtcdSpec { endpoints, tls, credentials: user, prefix, timeout },
        resolver.lookups(),
    )
    .unwrap()
}

/// Creates a store again and again, as the daemon does every few seconds, while the resolver does
/// not respond.
#[test]
fn threads_for_lookups_are_bounded_over_many_connections() {
    let resolver = Resolver::hanging();
    let connect = |number: usize| {
        let name = format!("etcd{}.example", number % 16);
        let store = store(&name, Duration::from_millis(50), &resolver);
        store.check("/suimon/").unwrap_err().detail
    };
    let (limit, mut number) = (Instant::now() + Duration::from_secs(120), 0);
    while resolver.begun() < LOOKUPS_MAX {
        assert!(Instant::now() < limit, "{} lookups", resolver.begun());
        connect(number);
        number += 1;
    }
    for number in 0..48 {
        connect(number);
    }
    assert_eq!((resolver.begun(), resolver.threads()), (LOOKUPS_MAX, LOOKUPS_MAX));
    // The error names the cause; the request was given more time than an attempt to connect.
    let store_of = store("etcd.example", Duration::from_secs(20), &resolver);
    let error = store_of.check("/suimon/").unwrap_err().detail;
    assert!(error.contains("16 lookups of host names"), "{error}");
    resolver.respond();
    wait_for("the end of the lookups", || resolver.threads() == 0);
}

#[test]
fn hanging_lookups_leave_threads_for_other_names() {
    let resolver = Resolver::hanging();
    let limit = Instant::now() + Duration::from_secs(120);
    while resolver.begun() < LOOKUPS_PER_NAME_MAX {
        assert!(Instant::now() < limit, "{} lookups", resolver.begun());
        let _ = store("hangs.example", Duration::from_millis(50), &resolver).check("/suimon/");
    }
    for _ in 0..10 {
        let _ = store("hangs.example", Duration::from_millis(50), &resolver).check("/suimon/");
    }
    assert_eq!(resolver.begun(), LOOKUPS_PER_NAME_MAX);
    let other = store("other.example", Duration::from_millis(50), &resolver);
    wait_for("a lookup of the other name", || {
        let _ = other.check("/suimon/");
        resolver.begun() > LOOKUPS_PER_NAME_MAX
    });
}

#[test]
fn a_store_is_dropped_at_once_although_a_lookup_hangs() {
    let resolver = Resolver::hanging();
    let store = store("etcd.example", Duration::from_millis(50), &resolver);
    wait_for("a lookup", || {
        let _ = store.check("/suimon/");
        resolver.begun() > 0
    });
    let (dropped, is_dropped) = channel();
    let dropping = std::thread::spawn(move || {
        drop(store);
        dropped.send(()).unwrap();
    });
    let in_time = is_dropped.recv_timeout(Duration::from_secs(20));
    resolver.respond();
    dropping.join().unwrap();
    in_time.expect("the store waits for the lookup");
}
