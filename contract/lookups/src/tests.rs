use std::sync::mpsc::channel;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::*;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// While the resolver does not respond, callers that time out and try again do not exceed the
/// limits of lookups.
#[test]
fn lookups_that_hang_are_bounded_and_count_until_they_end() {
    let (hold, hanging) = channel::<()>();
    let hanging = Mutex::new(hanging);
    let lookups = Lookups::new(move |_| {
        let _ = hanging.lock().unwrap().recv();
        Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))])
    });
    let runtime = runtime();
    let abandon = async |name: &str| {
        let result = timeout(Duration::from_millis(1), lookups.resolve(name)).await;
        result.ok().and_then(Result::err)
    };
    runtime.block_on(async {
        for _ in 0..100 {
            abandon("a.example").await;
        }
        assert_eq!(lookups.in_progress(), LOOKUPS_PER_NAME_MAX);
        for number in 0..100 {
            abandon(&format!("node{number}.example")).await;
        }
        assert_eq!(lookups.in_progress(), LOOKUPS_MAX);
        let error = abandon("other.example").await.unwrap();
        assert!(error.to_string().starts_with("16 lookups of host names"), "{error}");
        // Four names whose lookups hang reach the limit of all lookups. An IP address needs no
        // lookup.
        let addresses = lookups.resolve("192.0.2.1").await.unwrap();
        assert_eq!(addresses, [SocketAddr::from(([192, 0, 2, 1], 0))]);
    });
    drop(hold);
    // Blocks until all calls in progress have ended.
    drop(runtime);
    assert_eq!(lookups.in_progress(), 0);
}

#[test]
fn names_and_addresses_are_resolved() {
    let lookups = Lookups::process_wide();
    for name in ["127.0.0.1", "::1", "localhost"] {
        let addresses = runtime().block_on(lookups.resolve(name)).unwrap();
        let is_local = |address: &SocketAddr| address.ip().is_loopback() && address.port() == 0;
        assert!(!addresses.is_empty() && addresses.iter().all(is_local), "{name}: {addresses:?}");
    }
}
