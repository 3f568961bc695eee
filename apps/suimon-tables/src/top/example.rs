//! Example of rates for tests of this crate and of the program that draws them.

use suimon_contract::{
    Health, PowerEffect, QosDelivery, StorageState, TopDisk, TopPort, TopPower, TopSnapshot,
    TopTeam, WorkerStages, WorkerStatus,
};

use super::TopRates;

pub(super) fn port(name: &str, frames: u64) -> TopPort {
    TopPort {
        name: name.parse().unwrap(),
        switch: Some("lan".parse().unwrap()),
        health: Health::Up,
        rx_frames: frames,
        rx_bytes: frames * 1000,
        tx_frames: frames * 2,
        tx_bytes: frames * 3000,
        rx_dropped: frames / 10,
        tx_dropped: 0,
    }
}

pub(super) fn top_disk(requests: u64) -> TopDisk {
    let causes = [("own-maximum", 2_000_000_000), ("device-depth", 500_000_000)];
    let causes = causes.map(|(cause, ns)| (cause.to_owned(), ns));
    TopDisk {
        name: "web".parse().unwrap(),
        store: "fast".parse().unwrap(),
        state: StorageState::Ready,
        reads: requests,
        read_bytes: requests * 4096,
        writes: requests / 2,
        written_bytes: requests * 8192,
        other_requests: requests / 2,
        latency_sum_ns: requests * 300_000,
        last_5_s: Some(QosDelivery {
            window_ns: 5_000_000_000,
            guaranteed_iops: 1500,
            demand_iops: 4000,
            delivered_iops: 2000,
            queued_ns: causes.into_iter().collect(),
            ..QosDelivery::default()
        }),
        stale: false,
    }
}

pub(super) fn snapshot(ns: u64, nics: Vec<TopPort>, busy_ns: u64) -> TopSnapshot {
    let worker = WorkerStatus {
        id: 0,
        cpu: Some(3),
        queues: 4,
        cpu_time_ns: busy_ns + 1_000_000,
        busy_ns,
        batches: busy_ns / 1000,
        frames: busy_ns / 100,
        sleeps: 5,
        asleep: false,
        yields: 0,
        is_yielding: false,
        stages: WorkerStages {
            copy_in_ns: busy_ns / 4,
            classify_ns: busy_ns / 10,
            coalesce_ns: busy_ns / 20,
            segment_ns: 0,
            checksum_ns: busy_ns / 50,
            copy_out_ns: busy_ns / 2,
            notify_ns: busy_ns / 20,
            storage_ns: 0,
            poll_ns: busy_ns / 25 - busy_ns / 100,
            idle_ns: ns.saturating_sub(busy_ns),
        },
    };
    TopSnapshot {
        time_unix_ms: ns / 1_000_000,
        time_monotonic_ns: ns,
        nics,
        uplinks: vec![port("spare", 7), port("wan", ns / 1_000_000)],
        teams: vec![TopTeam {
            name: "both".parse().unwrap(),
            switch: Some("lan".parse().unwrap()),
            health: Health::Up,
            members: ["wan", "spare"].map(|name| name.parse().unwrap()).to_vec(),
        }],
        disks: vec![top_disk(ns / 1_000_000)],
        workers: vec![worker],
        power: TopPower {
            plan: Some("balanced".to_owned()),
            effect: PowerEffect::Full,
            energy_uj: Some(ns / 1000 * 42),
            read_monotonic_ns: ns,
            unavailable_reason: None,
        },
    }
}

/// Returns the rates of two seconds in which one NIC carried frames and another appeared.
pub(crate) fn example() -> TopRates {
    let before = snapshot(1_000_000_000, vec![port("web", 1000)], 0);
    let nics = vec![port("new", 500), port("web", 2_501_000)];
    let after = snapshot(3_000_000_000, nics, 1_500_000_000);
    TopRates::between(&before, &after)
}
