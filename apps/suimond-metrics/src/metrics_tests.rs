use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use suimon_contract::{
    DiskStatus, PowerStatus, QueueStatus, StoreStatus, TeamStatus, VmStatus, VmqStatus,
};

use super::*;
use crate::readings::PortReading;

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn power() -> PowerStatus {
    read(json!({
        "config": {"plan": "balanced"}, "effect": "partial",
        "settings": [
            {"cpus": [0], "setting": "governor", "required": "schedutil", "in_effect": true},
            {"cpus": [1], "setting": "governor", "required": "schedutil", "in_effect": true},
            {"cpus": [], "setting": "turbo", "required": "off", "in_effect": false},
        ],
        "data_plane": {"parking": true, "poll_us": 50, "vmq_high_percent": 85, "vmq_low_percent": 30},
        "cpus": [], "changed": [],
        "energy": {"zones": [
            {"zone": "intel-rapl:0", "name": "package-0", "energy_uj": 2_500_000,
             "milliwatts": 42_500, "counted": true},
            {"zone": "intel-rapl:0:0", "name": "core", "energy_uj": 1, "counted": false},
        ]},
    }))
}

fn vmq() -> VmqStatus {
    read(json!({
        "uplink": "both", "config": {},
        "workers": [
            {"worker": 0, "permitted": true, "queues": 1, "load_ppm": 0, "other_load_ppm": 0},
            {"worker": 1, "permitted": true, "queues": 0, "load_ppm": 0, "other_load_ppm": 0},
            {"worker": 2, "permitted": false, "queues": 0, "load_ppm": 0, "other_load_ppm": 0},
        ],
        "queues": [{
            "queue": "web/rx/0", "nic": "web", "default_queue": false, "worker": 3,
            "load_ppm": 125_000, "age_s": 1, "reason": "", "stay_reason": "",
        }],
    }))
}

fn readings() -> Readings {
    let counters = json!({
        "rx_frames": 3, "rx_bytes": 300, "tx_frames": 4, "tx_bytes": 400,
        "rx_dropped": [{"reason": "not_primary", "frames": 7}], "tx_dropped": [], "flooded": 0,
        "software_segmented": 0, "software_checksummed": 0, "software_coalesced_segments": 0,
        "software_coalesced_units": 0,
    });
    let member = |uplink: &str, state: &str, share: u32| {
        json!({
            "uplink": uplink, "state": state, "reason": "", "link_up": true, "primary": false,
            "standby": false, "rx_bps": 0, "tx_bps": 0, "rx_share_ppm": share,
            "tx_share_ppm": 1_000_000 - share, "flows_share_ppm": 500_000, "nics": 0,
            "counters": counters,
        })
    };
    let team: TeamStatus = read(json!({
        "config": {"name": "both", "members": ["left", "right", "spare"], "mode": "static"},
        "condition": {"health": "up"}, "counters": counters, "mtu": 1500, "speed_mbps": 10_000,
        "members": [
            member("left", "active", 250_000), member("right", "failed", 0),
            member("spare", "waiting", 0),
        ],
    }));
    Readings {
        power: power(),
        host: read(json!({
            "name": "h", "version": "0", "uptime_s": 1, "revision": 1, "switches": 1,
            "uplinks": 3, "teams": 1, "nics": 1,
        })),
        ports: vec![PortReading {
            kind: "team",
            name: "both".to_owned(),
            is_up: true,
            counters: team.counters.clone(),
        }],
        nic_uses_vf: vec![("web".to_owned(), true)],
        teams: vec![team],
        vmqs: vec![vmq()],
        queues: vec![QueueStatus {
            id: "web/rx/0".to_owned(),
            port: "web".to_owned(),
            worker: 3,
            frames: 0,
            bytes: 0,
            dropped_no_buffer: 0,
            moves: 5,
        }],
        workers: Vec::new(),
        stores: vec![store()],
        disks: vec![disk()],
        vms: vec![vm("running"), vm("lost")],
        pfs: vec![read(json!({
            "config": {"name": "wan", "device": "eth0", "vfs": 2},
            "condition": {"health": "failed", "reason": ""},
        }))],
        refused_requests_by_listener: [("api", 3), ("console", 0)],
        sriov_adapters: vec![read(json!({
            "address": "0000:01:00.0", "device": "eth0", "support": "NoIoMmuSupport",
            "vfs_supported": 7, "vfs_enabled": 2, "vfs_in_use": 1, "vfs": [],
        }))],
    }
}

fn vm(state: &str) -> VmStatus {
    let running = state == "running";
    read(json!({
        "config": {"name": state, "memory_bytes": 1 << 30}, "state": state,
        "cpus": if running { json!(2) } else { json!(null) },
        "uptime_s": if running { json!(61) } else { json!(null) },
    }))
}

fn store() -> StoreStatus {
    read(json!({
        "config": {"name": "fast", "path": "/srv/fast", "capacity_iops": 4000},
        "state": "ready", "free_bytes": 1024, "total_bytes": 4096, "capacity_iops": 4000,
        "virtual_bytes": 8192, "allocated_bytes": 3072, "overcommit_percent": 200, "nearly_full": true,
        "reserved_iops": 2000, "disks": 1, "delivered_iops": 1500,
        "latency_ns": 250_000, "depth": 1, "depth_allowed": 8,
        "measured": {
            "iops": 3900, "measured_unix_ms": 1, "seconds": 10, "patterns": [],
            "file_bytes": 1024, "direct": true, "others_iops": 0,
        },
        "estimate": {"iops": 4100, "age_ms": 1500},
    }))
}

fn disk() -> DiskStatus {
    read(json!({
        "config": {"name": "gold", "store": "fast", "format": "raw"},
        "state": "failed", "reason": "gone", "file": "/srv/fast/gold.raw",
        "counters": {
            "reads": requests(7, 28_672, 1), "writes": requests(0, 0, 0),
            "flushes": requests(2, 0, 0), "discards": requests(0, 0, 0),
        },
    }))
}

fn requests(requests: u64, bytes: u64, errors: u64) -> serde_json::Value {
    json!({
        "requests": requests, "bytes": bytes, "errors": errors,
        "latency_ns_p50": 1_000, "latency_ns_p99": 2_000, "latency_ns_max": 500_000_000,
    })
}

#[test]
fn teams_members_and_vmq_are_measured() {
    let text = render(&readings()).unwrap();
    for line in [
        "suimon_teams 1",
        "suimon_team_up{team=\"both\"} 1",
        "suimon_team_receive_bytes_total{team=\"both\"} 300",
        "suimon_team_transmit_bytes_total{team=\"both\"} 400",
        "suimon_team_dropped_frames_total{team=\"both\",direction=\"receive\",\
         reason=\"not_primary\"} 7",
        "suimon_team_speed_bits_per_second{team=\"both\"} 10000000000.0",
        "suimon_team_member_active{team=\"both\",uplink=\"left\"} 1.0",
        "suimon_team_member_active{team=\"both\",uplink=\"spare\"} 0.0",
        "suimon_team_member_usable{team=\"both\",uplink=\"spare\"} 1.0",
        "suimon_team_member_usable{team=\"both\",uplink=\"right\"} 0.0",
        "suimon_team_member_receive_ratio{team=\"both\",uplink=\"left\"} 0.25",
        "suimon_team_member_transmit_ratio{team=\"both\",uplink=\"left\"} 0.75",
        "suimon_team_member_flows_ratio{team=\"both\",uplink=\"left\"} 0.5",
        "suimon_nic_on_vf{nic=\"web\"} 1.0",
        "suimon_vmq_queue_worker{uplink=\"both\",nic=\"web\",queue=\"web/rx/0\"} 3.0",
        "suimon_vmq_queue_load_ratio{uplink=\"both\",nic=\"web\",queue=\"web/rx/0\"} 0.125",
        "suimon_vmq_worker_queues{uplink=\"both\",worker=\"0\"} 1.0",
        "suimon_vmq_worker_queues{uplink=\"both\",worker=\"1\"} 0.0",
        "suimon_queue_moves_total{queue=\"web/rx/0\"} 5",
        "suimon_power_plan_in_effect{plan=\"balanced\"} 0.0",
        "suimon_power_settings{state=\"in_effect\"} 2.0",
        "suimon_power_settings{state=\"lacking\"} 1.0",
        "suimon_power_energy_joules_total{zone=\"intel-rapl:0\",name=\"package-0\"} 2.5",
        "suimon_power_watts{zone=\"intel-rapl:0\",name=\"package-0\"} 42.5",
    ] {
        assert!(text.lines().any(|text_line| text_line == line), "{line}:\n{text}");
    }
    // A worker that VMQ may not use does not count as parked.
    assert!(!text.contains("worker=\"2\""), "{text}");
}

fn nbd() -> suimon_contract::DiskNbdStatus {
    read(json!({
        "clients": 1, "connections_max": 128, "buffer_bytes": 524_288, "buffer_max_bytes": 134_217_728,
        "connections": [{"transport": "unix", "peer": "process 7 of user 107", "buffer_bytes": 524_288}],
    }))
}

#[test]
fn connections_of_nbd_clients_have_their_limits_beside_them() {
    let mut readings = readings();
    readings.host.nbd = read(json!({
        "connections": 3, "connections_max": 1024, "buffer_bytes": 1_572_864,
        "buffer_max_bytes": 1_073_741_824, "peer_connections_max": 512,
        "peer_buffer_max_bytes": 536_870_912, "shortages": 9,
    }));
    readings.disks[0].nbd = Some(nbd());
    let text = render(&readings).unwrap();
    for line in [
        "suimon_nbd_connections 3",
        "suimon_nbd_connections_max 1024",
        "suimon_nbd_buffer_bytes 1572864",
        "suimon_nbd_buffer_max_bytes 1073741824",
        "suimon_nbd_buffer_shortages_total 9",
        "suimon_disk_nbd_connections{disk=\"gold\"} 1",
        "suimon_disk_nbd_connections_max{disk=\"gold\"} 128",
        "suimon_disk_nbd_buffer_bytes{disk=\"gold\"} 524288",
        "suimon_disk_nbd_buffer_max_bytes{disk=\"gold\"} 134217728",
    ] {
        assert!(text.lines().any(|text_line| text_line == line), "{line}\n{text}");
    }
}

#[test]
fn disks_and_stores_are_measured() {
    let text = render(&readings()).unwrap();
    for line in [
        "suimon_store_up{store=\"fast\"} 1.0",
        "suimon_store_total_bytes{store=\"fast\"} 4096.0",
        "suimon_store_overcommit_ratio{store=\"fast\"} 2.0",
        "suimon_store_nearly_full{store=\"fast\"} 1.0",
        "suimon_store_reserved_iops{store=\"fast\"} 2000.0",
        "suimon_store_measured_iops{store=\"fast\"} 3900.0",
        "suimon_store_estimated_iops{store=\"fast\"} 4100.0",
        "suimon_store_estimate_age_seconds{store=\"fast\"} 1.5",
        "suimon_store_latency_seconds{store=\"fast\"} 0.00025",
        "suimon_disk_up{disk=\"gold\"} 0.0",
        "suimon_disk_requests_total{disk=\"gold\",operation=\"read\"} 7",
        "suimon_disk_bytes_total{disk=\"gold\",operation=\"read\"} 28672",
        "suimon_disk_failed_requests_total{disk=\"gold\",operation=\"read\"} 1",
        "suimon_disk_latency_seconds{disk=\"gold\",operation=\"flush\",quantile=\"1\"} 0.5",
    ] {
        assert!(text.lines().any(|text_line| text_line == line), "{line}:\n{text}");
    }
    assert!(!text.contains("operation=\"write\",quantile"), "{text}");
}

/// Each disk of an aggregated policy reports the guarantee of all its disks in the store.
#[test]
fn the_minimum_of_an_aggregated_policy_is_one_series() {
    let mut readings = readings();
    let flow = |name: &str, delivered: u64| {
        let mut delivery = delivery();
        delivery["guaranteed_iops"] = json!(500);
        delivery["delivered_iops"] = json!(delivered);
        let flow = json!({
            "disk": name, "store": "fast", "holder": "qos_policy/gold",
            "limits": {"min_iops": 500}, "queued": 0, "in_flight": 0, "last_5_min": delivery,
            "last_5_s": delivery,
        });
        DiskStatus { qos: Some(read(flow)), ..disk() }
    };
    readings.disks = vec![flow("a", 200), flow("b", 301)];
    let text = render(&readings).unwrap();
    let labels = "{holder=\"qos_policy/gold\",store=\"fast\"}";
    for series in [
        format!("suimon_minimum_guaranteed_iops{labels} 500.0"),
        format!("suimon_minimum_delivered_iops{labels} 501.0"),
    ] {
        assert!(text.lines().any(|line| line == series), "{series}\n{text}");
    }
}

#[test]
fn without_teams_and_vmq_their_series_are_omitted() {
    let mut readings = readings();
    (readings.teams, readings.vmqs, readings.ports) = (Vec::new(), Vec::new(), Vec::new());
    readings.queues.clear();
    let text = render(&readings).unwrap();
    for name in ["suimon_team_", "suimon_vmq_", "suimon_queue_"] {
        assert!(!text.contains(name), "{name}:\n{text}");
    }
}

#[test]
fn adapters_have_metrics_of_their_virtual_functions() {
    let text = render(&readings()).unwrap();
    let labels = r#"{address="0000:01:00.0",device="eth0"}"#;
    for (name, value) in [("usable", 0), ("vfs_supported", 7), ("vfs_enabled", 2)] {
        let line = format!("suimon_sriov_{name}{labels} {value}.0\n");
        assert!(text.contains(&line), "{line}{text}");
    }
    assert!(text.contains(&format!("suimon_sriov_vfs_in_use{labels} 1.0\n")), "{text}");
    assert!(text.contains("suimon_pf_up{pf=\"wan\"} 0.0\n"), "{text}");
}

#[test]
fn vms_have_metrics_of_their_state() {
    let text = render(&readings()).unwrap();
    for line in [
        "suimon_vm_up{vm=\"running\"} 1.0",
        "suimon_vm_up{vm=\"lost\"} 0.0",
        "suimon_vm_failed{vm=\"running\"} 0.0",
        "suimon_vm_failed{vm=\"lost\"} 1.0",
        "suimon_vm_cpus{vm=\"running\"} 2.0",
        "suimon_vm_uptime_seconds{vm=\"running\"} 61.0",
    ] {
        assert!(text.lines().any(|text_line| text_line == line), "{line}:\n{text}");
    }
    assert!(!text.contains("suimon_vm_cpus{vm=\"lost\"}"), "{text}");
}

/// Returns readings with a port of each kind and a disk with limits.
fn readings_of_everything() -> Readings {
    let mut readings = readings();
    let port = readings.ports[0].clone();
    readings.ports = ["nic", "uplink", "team", "switch"]
        .map(|kind| PortReading { kind, name: kind.to_owned(), ..port.clone() })
        .into();
    readings.workers = vec![read(json!({
        "id": 0, "cpu": 2, "queues": 1, "cpu_time_ns": 1, "busy_ns": 1, "batches": 1, "frames": 1,
        "sleeps": 1, "asleep": false, "yields": 0, "yielding": false, "stages": stages(),
    }))];
    readings.disks[0].nbd = Some(nbd());
    readings.disks[0].qos = Some(read(json!({
        "disk": "gold", "store": "fast", "holder": "disk/gold", "limits": {"min_iops": 1},
        "queued": 0, "in_flight": 0, "last_5_min": delivery(), "last_5_s": delivery(),
    })));
    readings
}

fn stages() -> serde_json::Value {
    serde_json::to_value(suimon_contract::WorkerStages::default()).unwrap()
}

fn delivery() -> serde_json::Value {
    json!({
        "window_ns": 5_000_000_000_u64, "guaranteed_iops": 1, "demand_iops": 1, "delivered_iops": 1,
        "limited_by": [{"factor": "client-idle", "share_ppm": 1_000_000}],
    })
}

/// Returns the label names of the first series with this name, in order.
fn labels_of(text: &str, sample: &str) -> Vec<String> {
    let series = |line: &&str| line.split(['{', ' ']).next() == Some(sample);
    let line =
        text.lines().find(series).unwrap_or_else(|| panic!("no series of {sample}:\n{text}"));
    let Some((_, rest)) = line.split_once('{') else { return Vec::new() };
    let (labels, _) = rest.rsplit_once('}').unwrap();
    labels.split("\",").map(|label| label.split('=').next().unwrap().to_owned()).collect()
}

#[test]
fn the_reference_has_every_family_with_its_type_labels_and_description() {
    let text = render(&readings_of_everything()).unwrap();
    let families = reference::families();
    for family in &families {
        let name = family.sample_name();
        let labels: Vec<String> = family.labels.iter().map(|label| (*label).to_owned()).collect();
        assert_eq!(labels_of(&text, &name), labels, "{name}");
        let help = format!("# HELP {name} {}", family.help_text());
        assert!(text.lines().any(|line| line == help), "{help}\n{text}");
        let page = reference::page();
        assert!(page.contains(&format!("\n| `{name}` | ")), "{name}\n{page}");
    }
    // Old names of renamed families are on the page of renames.
    let is_of_family = |line: &&str| line.starts_with("# HELP ") && !line.contains(" Deprecated, ");
    let described = text.lines().filter(is_of_family).count();
    assert_eq!(described, families.len(), "{text}");
}

#[test]
fn renamed_families_are_written_under_both_names() {
    let families: Vec<_> =
        reference::families().iter().map(|family| family.sample_name()).collect();
    let text = render(&readings_of_everything()).unwrap();
    for rename in suimon_contract::RENAMES {
        let suimon_contract::RenamedItem::Metric { old_labels } = rename.item else { continue };
        let is_new = |name: &String| name.trim_end_matches("_total") == rename.new;
        assert!(families.iter().any(is_new), "{rename:?}");
        let samples = |name: &str| -> Vec<String> {
            let names = [format!("{name}{{"), format!("{name}_total{{")];
            let lines = text.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
            lines.map(|line| line.rsplit(' ').next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(samples(rename.old), samples(rename.new), "{rename:?}");
        assert!(!samples(rename.new).is_empty(), "{rename:?}");
        let help = format!("# HELP {}", rename.old);
        let help = text.lines().find(|line| line.starts_with(&help)).unwrap();
        assert!(help.contains(&format!("use {}", rename.new)), "{help}");
        for label in old_labels {
            let of_old = text.lines().find(|line| line.starts_with(rename.old)).unwrap();
            assert!(of_old.contains(&format!("{label}=")), "{of_old}");
        }
    }
}
