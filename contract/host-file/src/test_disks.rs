//! Strategies for valid stores, QoS policies and disks of every kind, for property tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

use crate::{DiskConfig, DiskFormat, Name, QosLimits, QosPolicyConfig, StoreCapacity, StoreConfig};

/// Storage resources of a host.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) stores: Vec<StoreConfig>,
    pub(crate) qos_policies: Vec<QosPolicyConfig>,
    pub(crate) disks: Vec<DiskConfig>,
}

/// Returns the name of the resource `index`: the prefix of its kind, followed by the number.
pub(crate) fn name(prefix: &str, index: usize) -> Name {
    format!("{prefix}{index}").parse().unwrap()
}

fn store() -> impl Strategy<Value = StoreConfig> {
    let capability = prop_oneof![
        4 => (1u64..1_000_000).prop_map(StoreCapacity::Declared),
        1 => Just(StoreCapacity::MEASURED),
    ];
    let numbers = (1u64..=2048, 1u32..=1024, 1u8..=100);
    (option::of(capability), numbers).prop_map(|(iops, (sectors, depth, full))| {
        let store = json!({
            "name": "s", "path": "/srv/a b", "normalization_bytes": 512_u64 << (sectors % 12),
            "depth_max": depth, "full_warning_percent": full,
        });
        StoreConfig { capacity_iops: iops, ..serde_json::from_value(store).unwrap() }
    })
}

fn limits() -> impl Strategy<Value = QosLimits> {
    let rates = (option::of(1u64..1000), option::of(1000u64..2000), option::of(512u64..1 << 40));
    (rates, 1u16..=10_000, option::of((2000u64..3000, 1u32..=3600))).prop_map(
        |((min_iops, max_iops, bytes), weight, burst)| {
            let burst = burst.filter(|_| max_iops.is_some());
            let max_bytes_per_s = bytes.map(crate::ByteSize::new);
            let (burst_iops, burst_s) = burst.unzip();
            QosLimits { min_iops, max_iops, max_bytes_per_s, weight, burst_iops, burst_s }
        },
    )
}

fn disk() -> impl Strategy<Value = DiskConfig> {
    let choices = (0usize..4, 0usize..3, any::<[bool; 8]>());
    let numbers = (option::of(1u64..1 << 30), 0u32..2, 1u16..=64);
    (choices, numbers, limits(), "[!-~]{1,20}").prop_map(
        |((format, kind, flags), (pages, block, queues), qos, serial)| {
            let formats = ["raw", "vhd", "vhdx", "pass-through"];
            let kinds = ["fixed", "dynamic", "differencing"];
            let mut disk = json!({
                "name": "d", "store": "s", "format": formats[format], "read_only": flags[0],
                "physical_sector": if flags[1] { 4096 } else { 512 },
            });
            if flags[2] {
                disk["serial"] = serial.into();
                disk["on_full"] = if flags[0] { "wait" } else { "error" }.into();
                disk["full_wait_s"] = (u32::from(queues) * 100).into();
            }
            if format < 3 {
                disk["size_bytes"] = pages.map(|pages| pages * 512).into();
                disk["file"] = flags[3].then_some("vms/x").into();
            }
            // Raw disks have no parents, and pass-through disks are fixed.
            let kind = if format == 0 { kind % 2 } else { kind };
            if format < 3 && flags[4] {
                disk["kind"] = kinds[kind].into();
                if kind == 2 {
                    disk["parent"] = "base/a.img".into();
                }
            }
            if matches!(format, 1 | 2) && disk["kind"] != "fixed" && flags[5] {
                disk["block_bytes"] = (1u64 << (20 + block)).into();
            }
            if flags[6] {
                disk["vhost_user"] = json!({"socket": "/run/v.sock", "queues": queues});
            }
            if flags[7] {
                disk["nbd"] = json!({
                    "socket": "/run/nbd.sock", "users": ["qemu"], "listen": "192.0.2.1:10809",
                    "tls_certificate": "/etc/c.pem", "tls_key": "/etc/k.pem",
                    "addresses": ["192.0.2.0/24"],
                });
            }
            if let serde_json::Value::Object(table) = &mut disk {
                table.retain(|_, value| !value.is_null());
            }
            DiskConfig { qos, ..serde_json::from_value(disk).unwrap() }
        },
    )
}

/// Generates storage in which every disk with a file is in the first store, and each other disk in
/// a store of its own.
pub(crate) fn storage() -> impl Strategy<Value = Storage> {
    let disks = vec((disk(), any::<bool>(), any::<bool>(), store()), 0..5);
    let policy = (limits(), any::<bool>(), any::<bool>());
    (store(), policy, disks).prop_map(|(mut first, (limits, is_aggregated, shared), disks)| {
        first.name = name("s", 0);
        let kind = if is_aggregated { "aggregated" } else { "dedicated" };
        let kind = serde_json::from_value(kind.into()).unwrap();
        let mut policy = QosPolicyConfig::new(name("p", 0), kind, limits);
        policy.shared = shared;
        if policy.spans_nodes() {
            (policy.max_bytes_per_s, policy.burst_iops, policy.burst_s) = (None, None, None);
        }
        let mut storage =
            Storage { stores: vec![first], qos_policies: vec![policy], disks: Vec::new() };
        for (index, (mut disk, has_policy, keep, mut store)) in disks.into_iter().enumerate() {
            disk.name = name("d", if keep { index } else { index + 10 });
            disk.store = name("s", 0);
            let file = disk.file.take();
            disk.file = file.map(|file| format!("{file}{index}").parse().unwrap());
            if let Some(vhost_user) = &mut disk.vhost_user {
                vhost_user.socket = format!("/run/v{index}.sock").into();
            }
            if has_policy {
                disk.qos_policy = Some(name("p", 0));
                disk.qos = QosLimits::NONE;
            }
            if disk.format == DiskFormat::PassThrough {
                store.name = name("s", index + 1);
                store.path = format!("/dev/sd{index}").into();
                disk.store = store.name.clone();
                storage.stores.push(store);
            }
            storage.disks.push(disk);
        }
        storage
    })
}
