//! Tests of the bounds of policies in etcd.

use suimon_contract::{ByteSize, QosPolicyKind};

use super::super::records::StoredPolicies;
use super::*;
use crate::testing::{FakeCluster, name};

const ROOT: &str = "/suimon/lab/";

fn config(policy: &str, max_iops: u64) -> QosPolicyConfig {
    let policy = serde_json::json!({ "name": policy, "shared": true, "max_iops": max_iops });
    serde_json::from_value(policy).unwrap()
}

fn entry(policy: &str, record: &PolicyRecord) -> ClusterEntry {
    let key = format!("{ROOT}{POLICIES}{policy}");
    ClusterEntry { key, value: encode_value(record), created_revision: 1, modified_revision: 1 }
}

/// Returns the entry of a policy. The names are in the reverse order of the numbers.
fn numbered_entry(number: u32) -> ClusterEntry {
    let policy = format!("p-{:05}", 99_999 - number);
    let record = PolicyRecord { key: PolicyKey(number), config: config(&policy, 100) };
    entry(&policy, &record)
}

/// Anyone with etcd's credentials can write keys.
#[test]
fn of_too_many_policies_the_newest_are_ignored() {
    let count = u32::try_from(POLICIES_MAX).unwrap();
    let entries: Vec<ClusterEntry> = (0..count + 100).map(numbered_entry).collect();
    let policies = decode_policies(ROOT, &entries);
    assert_eq!(policies.len(), POLICIES_MAX + 1);
    assert!(policies.values().all(|(record, _)| record.key.0 <= count));
    let policies = decode_policies(ROOT, &entries[..POLICIES_MAX]);
    assert_eq!(policies.len(), POLICIES_MAX);
}

/// A host would refuse the whole set of policies.
#[test]
fn invalid_policies_are_ignored() {
    let record = |config| PolicyRecord { key: PolicyKey(1), config };
    let valid = record(config("batch", 100));
    let above_maximum =
        record(QosPolicyConfig { min_iops: Some(200), ..config("above-maximum", 100) });
    let not_shared = record(QosPolicyConfig { shared: false, ..config("not-shared", 100) });
    let mut long = entry("long", &record(config("long", 100)));
    long.value.resize(2 * RECORD_BYTES_MAX, b' ');
    let entries = [
        entry("batch", &valid),
        entry("above-maximum", &above_maximum),
        entry("not-shared", &not_shared),
        entry("other-name", &valid),
        entry("out-of-range", &record(config("out-of-range", u64::MAX))),
        entry("\u{1}", &valid),
        long,
    ];
    let policies = decode_policies(ROOT, &entries);
    assert_eq!(policies.into_keys().collect::<Vec<_>>(), [name("batch")]);
}

/// Nodes ignore the record, so that each one would add the policy again and again.
#[test]
fn an_invalid_record_is_replaced_when_its_policy_is_added() {
    let cluster = FakeCluster::default();
    let policies = PolicyStore { store: &cluster, key_prefix: ROOT.to_owned() };
    let key = policies.record_key(&name("batch"));
    let add = |record: &PolicyRecord| {
        let put = ClusterChange::Put(key.clone(), encode_value(record), None);
        cluster.commit(&[], &[put]).unwrap();
        policies.add(&config("batch", 100)).unwrap();
        let view = cluster.read(ROOT).unwrap();
        decode_policies(ROOT, &view.entries)[&name("batch")].0.config.max_iops
    };
    let record = PolicyRecord { key: PolicyKey(1), config: config("batch", 300) };
    assert_eq!(add(&record), Some(300), "a valid record stays");
    let not_shared = QosPolicyConfig { shared: false, ..config("batch", 300) };
    assert_eq!(add(&PolicyRecord { config: not_shared, ..record }), Some(100));
}

#[test]
fn a_policy_for_which_a_cluster_has_no_room_is_refused_with_the_remedy() {
    let cluster = FakeCluster::default();
    let put = |policy: &str| {
        let record = PolicyRecord { key: PolicyKey(7), config: config(policy, 100) };
        let key = format!("{ROOT}{POLICIES}{policy}");
        ClusterChange::Put(key, encode_value(&record), None)
    };
    let changes: Vec<_> = (0..POLICIES_MAX).map(|number| put(&format!("p-{number}"))).collect();
    for chunk in changes.chunks(cluster.changes_max()) {
        cluster.commit(&[], chunk).unwrap();
    }
    let policies = PolicyStore { store: &cluster, key_prefix: ROOT.to_owned() };
    let error = policies.add(&config("batch", 100)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.message.contains("suimon qos policy delete NAME"), "{error}");
    assert!(error.message.contains("can have 4096"), "{error}");
    // Existing policies can be changed, and one replaces another.
    policies.add(&config("p-7", 100)).unwrap();
    let replaced = policies.commit_with(|transaction| {
        policies.add_write(transaction, &config("batch", 100), None, None)?;
        let key = policies.record_key(&name("p-7"));
        transaction.changes.push(ClusterChange::Remove(key));
        policies.check_count(transaction)
    });
    assert!(replaced.unwrap().is_some());
    assert_eq!(cluster.keys(&format!("{ROOT}{POLICIES}")).len(), POLICIES_MAX);
    assert!(policies.add(&config("more", 100)).is_err());
}

/// A value of the state store has 4 MiB at most. The desired state has other objects, too.
#[test]
fn the_largest_policies_need_half_of_a_value_of_the_state_store() {
    let longest_name = |number: usize| format!("{number:0>63}");
    let largest = |number: usize| PolicyRecord {
        key: PolicyKey(u32::MAX),
        config: QosPolicyConfig {
            kind: QosPolicyKind::Aggregated,
            min_iops: Some(u64::MAX),
            max_bytes_per_s: Some(ByteSize::new(u64::MAX)),
            weight: u16::MAX,
            burst_iops: Some(u64::MAX),
            burst_s: Some(u32::MAX),
            ..config(&longest_name(number), u64::MAX)
        },
    };
    let stored = StoredPolicies {
        policies: (0..POLICIES_MAX).map(largest).collect(),
        deleted: (0..POLICIES_MAX).map(|number| name(&longest_name(number))).collect(),
    };
    let bytes = serde_json::to_vec(&stored).unwrap().len();
    assert!(bytes <= 2 << 20, "{bytes} bytes");
}
