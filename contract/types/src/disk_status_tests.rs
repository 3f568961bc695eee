use super::*;
use crate::{
    Name, QosDelivery, QosLimitingFactor, QosLimits, QosTimeShare, StorePattern,
    StorePatternResult, parse_toml,
};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn measurement() -> StoreMeasurement {
    StoreMeasurement {
        iops: 50_000,
        measured_unix_ms: 1_700_000_000_000,
        seconds: 10,
        pattern_results: vec![StorePatternResult {
            pattern: StorePattern::RandomMixed,
            iops: 50_000,
            depth: 32,
            latency_ns_p50: 500_000,
            latency_ns_p99: 900_000,
        }],
        file_bytes: 1 << 30,
        is_direct_io: true,
        other_load_iops: 0,
    }
}

fn one_client() -> DiskNbdStatus {
    let client = DiskNbdClient {
        transport: DiskNbdTransport::Unix,
        peer: "process 7 of user 0".to_owned(),
        buffer_bytes: 1 << 19,
    };
    DiskNbdStatus { connection_count: 1, connections: vec![client], ..DiskNbdStatus::default() }
}

fn connected() -> DiskVhostUserStatus {
    let features = vec!["VIRTIO_BLK_F_MQ".to_owned()];
    DiskVhostUserStatus { connected: true, queues: 2, features }
}

/// Returns example rates for the test of published keys.
fn delivery() -> QosDelivery {
    QosDelivery {
        window_ns: 5_000_000_000,
        guaranteed_iops: 500,
        demand_iops: 700,
        delivered_iops: 600,
        queued_ns: [("device-depth".to_owned(), 1_000_000)].into(),
        limited_by: vec![QosTimeShare {
            factor: QosLimitingFactor::OthersMinimums,
            share_ppm: 1_000_000,
        }],
        queue_depth_milli: 4_000,
        device_latency_ns: Some(200_000),
        device_baseline_latency_ns: Some(100_000),
    }
}

#[test]
fn keys_are_as_published_and_read_as_they_are_written() {
    let config = parse_toml(
        "[[store]]\nname = \"fast\"\npath = \"/srv/fast\"\n[[disk]]\nname = \"web\"\n\
         store = \"fast\"\nformat = \"vhdx\"\nsize_bytes = \"10 GiB\"\nqos.min_iops = 500\n\
         [disk.vhost_user]\nsocket = \"/run/web.sock\"\n[disk.nbd]\nsocket = \"/run/nbd.sock\"\n",
        None,
    )
    .unwrap();
    let store = StoreStatus {
        config: config.stores[0].clone(),
        state: StorageState::Ready,
        reason: None,
        total_bytes: Some(1 << 40),
        free_bytes: Some(1 << 39),
        nearly_full: false,
        virtual_bytes: 10 << 30,
        allocated_bytes: 4 << 20,
        overcommit_percent: Some(2),
        capacity_iops: Some(50_000),
        capacity_source: Some(CapacitySource::Measured),
        last_measurement: Some(measurement()),
        estimate: Some(StoreCapacityEstimate { iops: 51_000, age_ms: 400 }),
        reserved_iops: 500,
        reserved_percent: Some(1),
        disks: 1,
        delivered_iops: 1234,
        latency_ns: Some(85_000),
        queue_depth: 3,
        queue_depth_limit: 32,
        stale: false,
    };
    let requests = DiskRequestCounters {
        requests: 7,
        bytes: 7 * 4096,
        errors: 1,
        latency_ns_p50: 80_000,
        latency_ns_p99: 900_000,
        latency_ns_max: 1_500_000,
    };
    let disk = DiskStatus {
        config: config.disks[0].clone(),
        state: StorageState::Failed,
        reason: Some("the file is no VHDX".to_owned()),
        file: "/srv/fast/web.vhdx".into(),
        kind: Some(DiskKind::Differencing),
        parent: "base.vhdx".parse().ok(),
        size_bytes: Some(10 << 30),
        allocated_bytes: Some(4 << 20),
        layers: Some(3),
        uncommitted_metadata_bytes: Some(4096),
        store_full: None,
        worker: Some(1),
        vhost_user: Some(connected()),
        nbd: Some(one_client()),
        counters: DiskCounters { reads: requests, ..DiskCounters::default() },
        qos: Some(QosFlowStatus {
            disk: name("web"),
            store: name("fast"),
            holder: "disk/web".to_owned(),
            limits: QosLimits { min_iops: Some(500), ..QosLimits::NONE },
            queued: 4,
            in_flight: 2,
            stale: false,
            last_5_s: delivery(),
            last_5_min: QosDelivery::default(),
        }),
        stale: true,
    };
    let json = serde_json::to_string_pretty(&(&store, &disk)).unwrap();
    assert_eq!(serde_json::from_str::<(StoreStatus, DiskStatus)>(&json).unwrap(), (store, disk));
    insta::assert_snapshot!(json);
}
