use suimon_contract::{ByteSize, ClusterCap, QosLimitingFactor, QosPolicyKind};

use super::*;

fn limits() -> QosLimits {
    QosLimits {
        min_iops: Some(500),
        max_iops: Some(12_000),
        max_bytes_per_s: Some(ByteSize::new(100 << 20)),
        weight: 250,
        burst_iops: Some(20_000),
        burst_s: Some(60),
    }
}

#[test]
fn limits_are_formatted_in_short() {
    assert_eq!(short_limits(&QosLimits::NONE), "–");
    assert_eq!(
        short_limits(&limits()),
        "min 500, max 12.0 k and 100 MiB/s, burst 20.0 k for 60 s, weight 250"
    );
    let bytes = QosLimits { max_bytes_per_s: limits().max_bytes_per_s, ..QosLimits::NONE };
    assert_eq!(short_limits(&bytes), "max 100 MiB/s");
}

#[test]
fn policies_are_shown_in_a_table_and_in_detail() {
    let policy = |name: &str, kind, limits, disks: &[&str]| QosPolicyStatus {
        config: QosPolicyConfig::new(name.parse().unwrap(), kind, limits),
        disks: disks.iter().map(|disk| disk.parse().unwrap()).collect(),
        reserved_iops: 1000,
        delivered_iops: 12_345,
        shares: Vec::new(),
    };
    let part = QosPolicyShare {
        store: "san".parse().unwrap(),
        min_iops: 250,
        max: Some(ClusterCap {
            iops: 700,
            reserved_iops: 500,
            leased_iops: Some(700),
            lease_remaining_ms: Some(2100),
            fallback_iops: None,
            time_to_fallback_ms: None,
        }),
    };
    let mut spanning = policy("batch", QosPolicyKind::Aggregated, QosLimits::NONE, &["web"]);
    spanning.config.shared = true;
    spanning.shares = vec![part];
    let policies = [
        policy("gold", QosPolicyKind::Dedicated, limits(), &["web", "db"]),
        policy("rest", QosPolicyKind::Aggregated, QosLimits::NONE, &[]),
        spanning,
    ];
    insta::assert_snapshot!(QosPolicyConfig::table(&policies).render());
    insta::assert_snapshot!(QosPolicyConfig::details(&policies[0]));
    insta::assert_snapshot!(QosPolicyConfig::details(&policies[1]));
    insta::assert_snapshot!(QosPolicyConfig::details(&policies[2]));
}

fn delivery(delivered_iops: u64, limited_by: &[(QosLimitingFactor, u32)]) -> QosDelivery {
    let share = |(factor, share_ppm): &(QosLimitingFactor, u32)| QosTimeShare {
        factor: *factor,
        share_ppm: *share_ppm,
    };
    QosDelivery {
        window_ns: 5_000_000_000,
        guaranteed_iops: 500,
        demand_iops: 9_999,
        delivered_iops,
        limited_by: limited_by.iter().map(share).collect(),
        queue_depth_milli: 15_949,
        device_latency_ns: Some(3_000_000),
        device_baseline_latency_ns: Some(980_000),
        ..QosDelivery::default()
    }
}

#[test]
fn flows_show_delivered_rates_and_limiting_factors() {
    use QosLimitingFactor as F;
    let limited_by = [(F::DiskMaximum, 926_000), (F::ClientIdle, 4_000), (F::Device, 70_000)];
    let flow = |disk: &str, holder: &str, limits, limited_by: &[_]| QosFlowStatus {
        disk: disk.parse().unwrap(),
        store: "fast".parse().unwrap(),
        holder: holder.to_owned(),
        limits,
        queued: 3,
        in_flight: 1,
        stale: false,
        last_5_s: delivery(480, limited_by),
        last_5_min: QosDelivery::default(),
    };
    let flows = [
        flow("web", "qos_policy/gold", limits(), &limited_by),
        flow("db", "disk/db", QosLimits::NONE, &[]),
    ];
    insta::assert_snapshot!(flow_table(&flows).render());
    insta::assert_snapshot!(delivery_table(&flows[0]).render());
}

#[test]
fn reservations_show_their_calculation() {
    let store = |name: &str, capacity_iops: Option<u64>, fits| StoreReservations {
        store: name.parse().unwrap(),
        minimum_count: 3,
        minimums_iops: 48_000,
        capacity_iops,
        reservable_iops: capacity_iops.unwrap_or_default() * 9 / 10,
        fits,
        explanation: String::new(),
    };
    let stores = [store("fast", Some(60_000), true), store("slow", None, false)];
    insta::assert_snapshot!(reservation_table(&stores).render(), @r"
    STORE  MINIMUMS     SUM  CAPACITY  LARGEST SUM  FITS
    fast          3  48.0 k    60.0 k       54.0 k  yes
    slow          3  48.0 k         –            0  no
    ");
}
