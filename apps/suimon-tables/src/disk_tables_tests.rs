use suimon_contract::{
    DiskNbdClient, DiskNbdStatus, DiskVhostUserStatus, QosDelivery, QosFlowStatus,
    QosLimitingFactor, QosLimits, QosTimeShare, StorageState, StoreCapacityEstimate, StorePattern,
    StorePatternResult, parse_toml,
};

use super::*;

const HOST: &str = r#"
[[store]]
name = "fast"
path = "/srv/fast"
capacity_iops = 50000
[[store]]
name = "slow"
path = "/srv/slow"
capacity_iops = "measure"
normalization_bytes = "64 KiB"
[[qos_policy]]
name = "gold"
min_iops = 1000
[[disk]]
name = "web"
store = "fast"
format = "vhdx"
size_bytes = "10 GiB"
serial = "WEB-1"
[disk.qos]
min_iops = 500
max_iops = 20000
max_bytes_per_s = "100 MiB"
[disk.vhost_user]
socket = "/run/web.sock"
queues = 2
[[disk]]
name = "old"
store = "slow"
format = "vhd"
kind = "fixed"
qos_policy = "gold"
"#;

fn stores() -> Vec<StoreStatus> {
    let mut stores = parse_toml(HOST, None).unwrap().stores.into_iter();
    let mut next = || stores.next().unwrap();
    vec![
        StoreStatus {
            config: next(),
            state: StorageState::Ready,
            reason: None,
            total_bytes: Some(2 << 40),
            free_bytes: Some(1 << 40),
            nearly_full: false,
            virtual_bytes: 10 << 30,
            allocated_bytes: 4 << 20,
            overcommit_percent: Some(2),
            capacity_iops: Some(50_000),
            capacity_source: Some(CapacitySource::Declared),
            last_measurement: Some(StoreMeasurement {
                iops: 48_000,
                measured_unix_ms: 1_700_000_000_000,
                seconds: 10,
                pattern_results: vec![StorePatternResult {
                    pattern: StorePattern::RandomWrite,
                    iops: 48_000,
                    depth: 32,
                    latency_ns_p50: 600_000,
                    latency_ns_p99: 1_400_000,
                }],
                file_bytes: 1 << 30,
                is_direct_io: true,
                other_load_iops: 250,
            }),
            estimate: Some(StoreCapacityEstimate { iops: 51_000, age_ms: 65_000 }),
            reserved_iops: 1500,
            reserved_percent: Some(3),
            disks: 1,
            delivered_iops: 12_345,
            latency_ns: Some(85_400),
            queue_depth: 7,
            queue_depth_limit: 32,
            stale: false,
        },
        StoreStatus {
            config: next(),
            state: StorageState::Failed,
            reason: Some("there is no directory /srv/slow; make it".to_owned()),
            total_bytes: None,
            free_bytes: None,
            nearly_full: false,
            virtual_bytes: 0,
            allocated_bytes: 0,
            overcommit_percent: None,
            capacity_iops: None,
            capacity_source: None,
            last_measurement: None,
            estimate: None,
            reserved_iops: 1000,
            reserved_percent: None,
            disks: 1,
            delivered_iops: 0,
            latency_ns: None,
            queue_depth: 0,
            queue_depth_limit: 256,
            stale: false,
        },
    ]
}

#[test]
fn stores_are_shown_in_a_table_and_in_detail() {
    let stores = stores();
    insta::assert_snapshot!(StoreConfig::table(&stores).render());
    insta::assert_snapshot!(StoreConfig::details(&stores[0]));
    insta::assert_snapshot!(StoreConfig::details(&stores[1]));
}

fn requests(requests: u64) -> DiskRequestCounters {
    DiskRequestCounters {
        requests,
        bytes: requests * 4096,
        errors: 1,
        latency_ns_p50: 80_100,
        latency_ns_p99: 2_340_000,
        latency_ns_max: 1_020_000_000,
    }
}

fn limited_by() -> Vec<QosTimeShare> {
    let factors = [(QosLimitingFactor::DiskMaximum, 998_000), (QosLimitingFactor::Device, 2_000)];
    factors.map(|(factor, share_ppm)| QosTimeShare { factor, share_ppm }).into()
}

fn flow(web: &DiskConfig) -> QosFlowStatus {
    let limits: QosLimits = web.qos;
    let queued =
        [("own-maximum", 1_500_000_000), ("device-depth", 2_000_000), ("own-bandwidth", 0)];
    QosFlowStatus {
        disk: web.name.clone(),
        store: web.store.clone(),
        holder: "disk/web".to_owned(),
        limits,
        queued: 12,
        in_flight: 4,
        stale: false,
        last_5_s: QosDelivery {
            window_ns: 5_000_000_000,
            guaranteed_iops: 500,
            demand_iops: 25_000,
            delivered_iops: 19_990,
            queued_ns: queued.into_iter().map(|(cause, ns)| (cause.to_owned(), ns)).collect(),
            limited_by: limited_by(),
            queue_depth_milli: 16_000,
            ..QosDelivery::default()
        },
        last_5_min: QosDelivery { delivered_iops: 400, ..QosDelivery::default() },
    }
}

fn disks() -> Vec<DiskStatus> {
    let mut disks = parse_toml(HOST, None).unwrap().disks.into_iter();
    let (web, old) = (disks.next().unwrap(), disks.next().unwrap());
    let qos = Some(flow(&web));
    vec![
        DiskStatus {
            config: web,
            state: StorageState::Ready,
            reason: None,
            file: "/srv/fast/web.vhdx".into(),
            kind: Some(DiskKind::Differencing),
            parent: "base.vhdx".parse().ok(),
            size_bytes: Some(10 << 30),
            allocated_bytes: Some(1_300 << 20),
            layers: Some(3),
            uncommitted_metadata_bytes: Some(0),
            store_full: None,
            worker: Some(1),
            vhost_user: Some(DiskVhostUserStatus {
                connected: true,
                queues: 2,
                features: vec!["VIRTIO_BLK_F_MQ".to_owned(), "VIRTIO_BLK_F_FLUSH".to_owned()],
            }),
            nbd: Some(DiskNbdStatus {
                connection_count: 2,
                connections_max: 128,
                buffer_bytes: 1280 << 10,
                buffer_max_bytes: 128 << 20,
                connections: vec![
                    DiskNbdClient {
                        transport: DiskNbdTransport::Unix,
                        peer: "process 7 of user 107".into(),
                        buffer_bytes: 512 << 10,
                    },
                    DiskNbdClient {
                        transport: DiskNbdTransport::Tls,
                        peer: "192.0.2.7:40000".into(),
                        buffer_bytes: 768 << 10,
                    },
                ],
            }),
            counters: DiskCounters {
                reads: requests(1_234_567),
                writes: requests(10),
                ..DiskCounters::default()
            },
            qos,
            stale: true,
        },
        DiskStatus {
            config: old,
            state: StorageState::Failed,
            reason: Some("the footer is damaged".to_owned()),
            file: "/srv/slow/old.vhd".into(),
            kind: None,
            parent: None,
            size_bytes: None,
            allocated_bytes: None,
            layers: None,
            uncommitted_metadata_bytes: None,
            store_full: None,
            worker: None,
            vhost_user: None,
            nbd: None,
            counters: DiskCounters::default(),
            qos: None,
            stale: false,
        },
    ]
}

#[test]
fn disks_are_shown_in_a_table_and_in_detail() {
    let disks = disks();
    insta::assert_snapshot!(DiskConfig::table(&disks).render());
    insta::assert_snapshot!(DiskConfig::details(&disks[0]));
    insta::assert_snapshot!(DiskConfig::details(&disks[1]));
}

#[test]
fn users_of_a_disk_are_formatted_as_text() {
    let mut disk = disks().remove(0);
    assert_eq!(used_by(&disk), "VM, 2 NBD clients");
    disk.vhost_user = Some(DiskVhostUserStatus::default());
    disk.nbd = Some(DiskNbdStatus { connection_count: 1, ..DiskNbdStatus::default() });
    assert_eq!(used_by(&disk), "1 NBD client");
    disk.nbd = None;
    assert_eq!(used_by(&disk), "–");
}
