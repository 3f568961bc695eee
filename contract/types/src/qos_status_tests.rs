use super::*;
use crate::{QosLimits, QosPolicyKind};

/// Fails if a published key is renamed.
#[test]
fn keys_are_as_published_and_read_as_they_are_written() {
    let limits = QosLimits { min_iops: Some(1000), ..QosLimits::NONE };
    let policy = QosPolicyStatus {
        config: QosPolicyConfig::new("gold".parse().unwrap(), QosPolicyKind::Aggregated, limits),
        disks: vec!["web".parse().unwrap()],
        reserved_iops: 1000,
        delivered_iops: 900,
        shares: vec![QosPolicyShare {
            store: "san".parse().unwrap(),
            min_iops: 250,
            max: Some(ClusterCap { iops: 700, reserved_iops: 500, ..ClusterCap::default() }),
        }],
    };
    let answer = WhatIfResponse {
        fits: false,
        stores: vec![StoreReservations {
            store: "fast".parse().unwrap(),
            minimum_count: 1,
            minimums_iops: 1000,
            capacity_iops: None,
            reservable_iops: 0,
            fits: false,
            explanation: "what the store can do is not known".to_owned(),
        }],
        warnings: Vec::new(),
    };
    let json = serde_json::to_string_pretty(&(&policy, &answer)).unwrap();
    let read: (QosPolicyStatus, WhatIfResponse) = serde_json::from_str(&json).unwrap();
    assert_eq!(read, (policy, answer));
    insta::assert_snapshot!(json);
}
