//! Tests with a real etcd cluster of three members.

use std::time::{Duration, Instant};

use crate::members::{Etcd, Gate, RecordingObserver, authority, eventually, value};
use suimon_etcd::{EtcdSpec, EtcdStore, EtcdTls};
use suimon_ports::{
    ClusterChange, ClusterCommitResult, ClusterCondition, ClusterElectionResult, ClusterKvStore,
    ClusterLeaseId, ClusterStoreErrorKind as Kind,
};

fn put(key: &str, value: &str) -> ClusterChange {
    ClusterChange::Put(key.to_owned(), value.as_bytes().to_vec(), None)
}

fn revision(commit: ClusterCommitResult) -> u64 {
    match commit {
        ClusterCommitResult::Committed(revision) => revision,
        ClusterCommitResult::ConditionFailed => panic!("a condition failed"),
    }
}

#[test]
fn transactions_are_atomic_and_conditions_are_checked() {
    let etcd = Etcd::start(false);
    let store = etcd.connect();
    let (first, second) = ("/suimon/one", "/suimon/two");
    let absent = ClusterCondition::KeyAbsent(first.to_owned());
    let created = revision(
        store.commit(std::slice::from_ref(&absent), &[put(first, "1"), put(second, "2")]).unwrap(),
    );
    let view = store.read("/suimon/").unwrap();
    let keys: Vec<_> =
        view.entries.iter().map(|entry| (entry.key.as_str(), entry.created_revision)).collect();
    assert_eq!(keys, [(first, created), (second, created)]);
    assert!(view.revision >= created);
    // No change is made if one condition fails.
    let failed =
        store.commit(&[absent], &[put(second, "3"), ClusterChange::Remove(first.to_owned())]);
    assert_eq!(failed.unwrap(), ClusterCommitResult::ConditionFailed);
    assert_eq!(value(&store, second).unwrap(), "2");
    let unmodified = ClusterCondition::KeyUnmodifiedSince(second.to_owned(), created);
    let again = [unmodified, ClusterCondition::KeyCreatedAt(first.to_owned(), created)];
    assert!(revision(store.commit(&again, &[put(second, "4")]).unwrap()) > created);
    let failed = store.commit(&again, &[put(second, "5")]).unwrap();
    assert_eq!(failed, ClusterCommitResult::ConditionFailed);
    // The maximum number of changes, and one more.
    let many = |count: usize| -> Vec<_> {
        (0..count).map(|index| put(&format!("/suimon/many/{index}"), "x")).collect()
    };
    let made_at = Instant::now();
    revision(store.commit(&[], &many(store.changes_max())).unwrap());
    let error = store.commit(&[], &many(store.changes_max() + 1)).unwrap_err();
    assert_eq!(error.kind, Kind::Full, "{error}");
    // The age refers to the last transaction that was sent; a rejected one is not sent.
    assert!(store.time_since_response().unwrap() <= made_at.elapsed());
}

#[test]
fn one_leader_is_elected_and_its_late_writes_are_rejected() {
    let etcd = Etcd::start(false);
    let (leader, candidate) = (etcd.connect(), etcd.connect());
    let key = "/suimon/leader";
    // Several times as long as a loaded machine may delay a program.
    let span = Duration::from_secs(10);
    let (leased, lease) = (Instant::now(), leader.grant_lease(span).unwrap());
    let ClusterElectionResult::Elected(term) =
        leader.campaign(key, b"one", lease.as_ref()).unwrap()
    else {
        panic!("the first candidate is not elected");
    };
    // Repeating the election changes nothing.
    assert_eq!(
        leader.campaign(key, b"one", lease.as_ref()).unwrap(),
        ClusterElectionResult::Elected(term)
    );
    let second = candidate.grant_lease(span).unwrap();
    let other = candidate.campaign(key, b"two", second.as_ref()).unwrap();
    assert_eq!(other, ClusterElectionResult::OtherLeader(b"one".to_vec(), term));
    let fence = [ClusterCondition::KeyCreatedAt(key.to_owned(), term)];
    revision(leader.commit(&fence, &[put("/suimon/grant", "of one")]).unwrap());
    // The lease is kept alive for longer than its duration.
    eventually("more than the duration of the lease", || (leased.elapsed() > span).then_some(()));
    assert!(lease.remaining() > Duration::ZERO);
    assert_eq!(value(&leader, key).unwrap(), "one");
    // The lease is revoked: another leader is elected at once, and a late write of the first one is
    // rejected.
    let observer = RecordingObserver::new();
    let watch = candidate.watch("/suimon/leader", observer.clone()).unwrap();
    eventually("a snapshot", || (!observer.snapshots.lock().unwrap().is_empty()).then_some(()));
    drop(lease);
    eventually("the removal of the key", || (observer.values(key) == ["-"]).then_some(()));
    let ClusterElectionResult::Elected(next) =
        candidate.campaign(key, b"two", second.as_ref()).unwrap()
    else {
        panic!("the second candidate is not elected");
    };
    assert!(next > term);
    let late = leader.commit(&fence, &[put("/suimon/grant", "late")]).unwrap();
    assert_eq!(late, ClusterCommitResult::ConditionFailed);
    assert_eq!(value(&candidate, "/suimon/grant").unwrap(), "of one");
    drop(watch);
}

#[test]
fn the_store_continues_when_members_fail() {
    let mut etcd = Etcd::start(false);
    let store = etcd.connect_for(Duration::from_secs(5));
    let observer = RecordingObserver::new();
    let _watch = eventually("a watch", || store.watch("/suimon/", observer.clone()).ok());
    eventually("a snapshot", || (!observer.snapshots.lock().unwrap().is_empty()).then_some(()));
    let span = Duration::from_secs(10);
    let leased = Instant::now();
    let lease = eventually("a lease", || store.grant_lease(span).ok());
    // The member that receives requests, then the leader at that time.
    let mut written = Vec::new();
    for round in 0..3 {
        let killed = match round {
            0 => None,
            1 => Some(0),
            _ => Some(etcd.leader()),
        };
        if let Some(killed) = killed {
            etcd.kill(killed);
        }
        let started_at = Instant::now();
        for number in 0..5 {
            let text = format!("{round}.{number}");
            // After a request without reply, the value is read before the request is repeated.
            eventually("a write", || {
                if value(&store, "/suimon/key").as_ref() == Some(&text) {
                    return Some(());
                }
                store.commit(&[], &[put("/suimon/key", &text)]).ok().map(|_| ())
            });
            written.push(text);
        }
        eprintln!("round {round}: five writes in {:?}", started_at.elapsed());
        eventually("all changes at the watch", || {
            (observer.values("/suimon/key") == written).then_some(())
        });
        if let Some(killed) = killed {
            etcd.begin(killed);
            etcd.wait_back(killed);
        }
    }
    // Without renewal the lease would have expired by now.
    eventually("more than the duration of the lease", || (leased.elapsed() > span).then_some(()));
    assert!(
        lease.remaining() > Duration::ZERO,
        "the lease has expired although members were available"
    );
    // Without a quorum no request succeeds, and an error is reported.
    etcd.kill(0);
    etcd.kill(1);
    let error =
        eventually("an error of a request without a quorum", || store.read("/suimon/key").err());
    assert_eq!(error.kind, Kind::Unreachable, "{error}");
    let error = store.commit(&[], &[put("/suimon/key", "lost")]).unwrap_err();
    assert!(matches!(error.kind, Kind::OutcomeUnknown | Kind::Unreachable), "{error}");
    // A lease that cannot be renewed is not considered valid.
    eventually("the end of the lease", || (lease.remaining() == Duration::ZERO).then_some(()));
    // The remaining member replies to progress requests until it detects that it has no quorum.
    // Then no member replies.
    let (silent, measured_at) = eventually("the age of the last reply", || {
        let (age, measured_at) = (store.time_since_response().unwrap(), Instant::now());
        (age > Duration::from_secs(3)).then_some((age, measured_at))
    });
    let error = store.read("/suimon/key").unwrap_err();
    // In this order neither instant makes the value larger than the age.
    let due = silent + measured_at.elapsed();
    assert!(store.time_since_response().unwrap() >= due, "a member replied after {error}");
    etcd.begin(0);
    etcd.begin(1);
    eventually("a reply after the restart", || store.read("/suimon/").ok());
    let last = |text: &str| observer.values("/suimon/key").last().is_some_and(|last| last == text);
    eventually("a write", || store.commit(&[], &[put("/suimon/key", "end")]).ok());
    eventually("a change at the watch after the restart", || last("end").then_some(()));
}

#[test]
fn keys_are_deleted_with_an_expired_lease() {
    let etcd = Etcd::start(false);
    let store = etcd.connect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // If this program is not scheduled in time, the lease expires before its key is read.
    let (granted, change) = eventually("a key with a lease", || {
        let granted = Instant::now();
        let id = runtime.block_on(async {
            let mut client = etcd_client::Client::connect(&etcd.endpoints, None).await.ok()?;
            Some(client.lease_grant(3, None).await.ok()?.id())
        })?;
        let lease = Some(ClusterLeaseId(id));
        let change = ClusterChange::Put("/suimon/here".to_owned(), b"yes".to_vec(), lease);
        store.commit(&[], std::slice::from_ref(&change)).ok()?;
        (value(&store, "/suimon/here").as_deref() == Some("yes")).then_some((granted, change))
    });
    eventually("the removal of the key", || value(&store, "/suimon/here").is_none().then_some(()));
    assert!(granted.elapsed() > Duration::from_secs(2));
    assert_eq!(store.commit(&[], &[change]).unwrap_err().kind, Kind::LeaseEnded);
}

/// A watch is interrupted, and the changes that it misses are compacted meanwhile.
#[test]
fn a_watch_continues_after_compaction() {
    let etcd = Etcd::start(false);
    let writing = etcd.connect();
    // The watch uses one endpoint only, so that it misses all changes while the proxy is closed.
    let gate = Gate::to(&etcd.endpoints[0]);
    let spec = EtcdSpec { endpoints: vec![gate.endpoint()], ..etcd.spec() };
    let watching = eventually("a reply of a member", || EtcdStore::connect(spec.clone()).ok());
    let observer = RecordingObserver::new();
    let _watch = watching.watch("/suimon/", observer.clone()).unwrap();
    eventually("a snapshot", || (!observer.snapshots.lock().unwrap().is_empty()).then_some(()));
    revision(writing.commit(&[], &[put("/suimon/a", "before")]).unwrap());
    eventually("the first change", || (observer.values("/suimon/a") == ["before"]).then_some(()));
    gate.close();
    let mut last = 0;
    for number in 0..20 {
        last = eventually("a write", || {
            match writing.commit(&[], &[put("/suimon/a", &number.to_string())]) {
                Ok(ClusterCommitResult::Committed(revision)) => Some(revision),
                _ => None,
            }
        });
    }
    // Compacted at the member that the watch returns to, because other members compact later.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut client = etcd_client::Client::connect(&etcd.endpoints[..1], None).await.unwrap();
        client.compact(i64::try_from(last).unwrap(), None).await.unwrap();
    });
    gate.open();
    let view =
        eventually("a second snapshot", || observer.snapshots.lock().unwrap().get(1).cloned());
    assert!(view.revision >= last);
    let entry = view.entries.iter().find(|entry| entry.key == "/suimon/a").unwrap();
    assert_eq!(entry.value, b"19");
    revision(writing.commit(&[], &[put("/suimon/a", "after")]).unwrap());
    eventually("the changes after the compaction", || {
        observer.values("/suimon/a").last().is_some_and(|value| value == "after").then_some(())
    });
    let errors = observer.errors.lock().unwrap();
    assert!(errors.iter().any(|error| error.detail.contains("compacted")), "{errors:?}");
}

/// Responses of clusters with many nodes and stores exceed 4 MB, the default limit of gRPC clients,
/// both in a read and in the backlog of a watch.
#[test]
fn large_responses_are_received() {
    const VALUES: usize = 6;
    let etcd = Etcd::start(false);
    let writing = etcd.connect();
    let gate = Gate::to(&etcd.endpoints[0]);
    let spec = EtcdSpec { endpoints: vec![gate.endpoint()], ..etcd.spec() };
    let watching = eventually("a reply of a member", || EtcdStore::connect(spec.clone()).ok());
    let observer = RecordingObserver::new();
    let _watch = watching.watch("/suimon/", observer.clone()).unwrap();
    eventually("a snapshot", || (!observer.snapshots.lock().unwrap().is_empty()).then_some(()));
    gate.close();
    let large = "x".repeat(1 << 20);
    for number in 0..VALUES {
        let change = put(&format!("/suimon/large/{number}"), &large);
        eventually("a write", || writing.commit(&[], std::slice::from_ref(&change)).ok());
    }
    let view = writing.read("/suimon/large/").unwrap();
    assert_eq!(view.entries.len(), VALUES);
    assert!(view.entries.iter().all(|entry| entry.value.len() == large.len()));
    gate.open();
    eventually("the missed changes", || {
        (observer.changes.lock().unwrap().len() >= VALUES).then_some(())
    });
    assert_eq!(observer.snapshots.lock().unwrap().len(), 1, "a second snapshot was sent");
}

#[test]
fn certificates_and_passwords() {
    let etcd = Etcd::start(true);
    let store = etcd.connect();
    revision(store.commit(&[], &[put("/suimon/secret", "1")]).unwrap());
    // A member whose certificate comes from another CA is rejected.
    let folder = tempfile::TempDir::new().unwrap();
    let tls = EtcdTls { ca_certificates: authority(&folder).authority, identity: None };
    let timeout = Duration::from_secs(2);
    let spec = EtcdSpec { tls: Some(tls), timeout, ..etcd.spec() };
    let error = EtcdStore::connect(spec).err().expect("a certificate of another CA is accepted");
    assert_eq!(error.kind, Kind::Unreachable, "{error}");
    // With passwords.
    let pem = etcd.spec().tls.unwrap().ca_certificates;
    let tls =
        etcd_client::TlsOptions::new().ca_certificate(etcd_client::Certificate::from_pem(pem));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let options = etcd_client::ConnectOptions::new().with_tls(tls);
        let mut client =
            etcd_client::Client::connect(&etcd.endpoints[..1], Some(options)).await.unwrap();
        client.user_add("root", "rootpw", None).await.unwrap();
        client.user_grant_role("root", "root").await.unwrap();
        client.role_add("suimon").await.unwrap();
        let permission = etcd_client::Permission::read_write("/suimon/").with_prefix();
        client.role_grant_permission("suimon", permission).await.unwrap();
        client.user_add("suimon", "right", None).await.unwrap();
        client.user_grant_role("suimon", "suimon").await.unwrap();
        client.auth_enable().await.unwrap();
    });
    let user = |password: &str| {
        let user = Some(("suimon".to_owned(), password.to_owned()));
        EtcdStore::connect(EtcdSpec { credentials: user, ..etcd.spec() })
    };
    let error = user("wrong").err().expect("it is the wrong password");
    assert_eq!(error.kind, Kind::NotAllowed, "{error}");
    assert!(
        !format!(
            "{:?}",
            EtcdSpec { credentials: Some(("a".into(), "hush".into())), ..etcd.spec() }
        )
        .contains("hush")
    );
    let allowed = user("right").unwrap();
    assert_eq!(value(&allowed, "/suimon/secret").unwrap(), "1");
    let observer = RecordingObserver::new();
    let _watch = allowed.watch("/suimon/", observer.clone()).unwrap();
    eventually("a snapshot", || (!observer.snapshots.lock().unwrap().is_empty()).then_some(()));
    let lease = allowed.grant_lease(Duration::from_secs(10)).unwrap();
    let elected = allowed.campaign("/suimon/leader", b"me", lease.as_ref()).unwrap();
    assert!(matches!(elected, ClusterElectionResult::Elected(_)));
    eventually("the change at the watch", || {
        (observer.values("/suimon/leader") == ["me"]).then_some(())
    });
    let error = allowed.read("/elsewhere/").unwrap_err();
    assert_eq!(error.kind, Kind::NotAllowed, "{error}");
    let error = store.read("/suimon/").unwrap_err();
    assert_eq!(error.kind, Kind::NotAllowed, "{error}");
}
