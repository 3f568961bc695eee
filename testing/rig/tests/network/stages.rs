//! Time of workers per processing stage, as the command line, the API and the metrics report it,
//! with real traffic between namespace guests.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, NamespaceGuest, Rig, iperf, private_lan, wait_until};

/// Configuration of a NIC that receives neither large frames nor partial checksums.
const PLAIN: &str = "[nic.offload]\nsegmentation = false\nrx_checksum = false";

/// Time of all workers since their start by stage, in ns.
type Stages = BTreeMap<String, u64>;

fn stages_of(worker: &Value) -> Stages {
    let stages = worker["stages"].as_object().unwrap_or_else(|| panic!("{worker}"));
    stages.iter().map(|(name, ns)| (name.clone(), ns.as_u64().unwrap())).collect()
}

fn stages(daemon: &Daemon) -> Stages {
    let mut sum = Stages::new();
    for worker in daemon.json(&["worker", "list"]).unwrap().as_array().unwrap() {
        for (name, ns) in stages_of(worker) {
            *sum.entry(name).or_default() += ns;
        }
    }
    sum
}

/// Returns the increase of each stage's time during a TCP stream of two seconds.
fn growth(daemon: &Daemon, from: &NamespaceGuest, to: &NamespaceGuest) -> Stages {
    let before = stages(daemon);
    let report = iperf::measure(&from.namespace, &to.address(), 2, &[]).unwrap();
    assert!(report.bits_per_second > 0.0, "{report:?}");
    let after = stages(daemon);
    after.into_iter().map(|(name, ns)| (name.clone(), ns - before[&name])).collect()
}

#[test]
fn software_offloads_of_a_nic_are_counted_in_its_stages() {
    let rig = Rig::new().unwrap();
    let names = [("a", ""), ("b", PLAIN), ("c", "")];
    let (daemon, guests) = private_lan(&rig, &names).unwrap();
    let [a, b, c] = guests.as_slice() else { panic!() };
    let _servers = [b, c].map(|guest| iperf::serve(&rig, &guest.namespace).unwrap());

    // Large frames are forwarded without segmentation.
    let without_segmentation = growth(&daemon, a, c);
    assert_eq!(
        (without_segmentation["segment_ns"], without_segmentation["checksum_ns"]),
        (0, 0),
        "{without_segmentation:?}"
    );
    assert!(
        without_segmentation["copy_in_ns"] > 0 && without_segmentation["copy_out_ns"] > 0,
        "{without_segmentation:?}"
    );
    assert!(
        without_segmentation["classify_ns"] > 0 && without_segmentation["notify_ns"] > 0,
        "{without_segmentation:?}"
    );

    // Large frames are segmented and their checksums completed. The times depend on the machine: a
    // worker that loses its CPU in a stage counts the time there. Therefore only stages that must
    // have work are asserted, and the others are printed.
    let cut = growth(&daemon, a, b);
    assert!(cut["segment_ns"] > 0 && cut["checksum_ns"] > 0, "{cut:?}");
    println!("segmented: {cut:?}");

    // Segments with complete checksums are coalesced for a NIC that accepts large frames.
    let switches = ["tx", "off", "tso", "off", "gso", "off"];
    a.namespace.ethtool(NamespaceGuest::DEVICE, &switches).unwrap();
    let joined = growth(&daemon, a, c);
    assert!(joined["coalesce_ns"] > 0, "{joined:?} after {cut:?}");
    let status = daemon.json(&["nic", "show", "c"]).unwrap();
    assert!(status["counters"]["software_coalesced_units"].as_u64() > Some(0), "{status}");
    println!("coalesced: {joined:?}");
}

#[test]
fn an_idle_worker_reports_idle_time_up_to_the_query_and_the_sums_agree() {
    let rig = Rig::new().unwrap();
    let (daemon, _guests) = private_lan(&rig, &[("a", ""), ("b", "")]).unwrap();
    // The guests' kernels send neighbour and router solicitations at first.
    wait_until("an idle second", Duration::from_secs(120), || {
        let top = daemon.json(&["top", "--stages", "--interval", "1000"])?;
        let workers = top["workers"].as_array().unwrap();
        let shares = workers.iter().map(|worker| &worker["stages_permille"]);
        Ok(shares.into_iter().all(|shares| shares["idle"].as_u64() >= Some(990)))
    })
    .unwrap();
    let snapshot = || {
        let text = daemon.http("GET", "/1.0/top", None).unwrap().text;
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let snapshots = [snapshot(), snapshot(), snapshot()];
    let times =
        snapshots.each_ref().map(|snapshot| snapshot["time_monotonic_ns"].as_u64().unwrap());
    for nth in 0..snapshots[0]["workers"].as_array().unwrap().len() {
        let worker_snapshots = snapshots.each_ref().map(|snapshot| &snapshot["workers"][nth]);
        for pair in worker_snapshots.windows(2) {
            let [before, after] = [pair[0], pair[1]].map(stages_of);
            for (name, ns) in &after {
                assert!(*ns >= before[name], "{name} went back: {pair:?}");
            }
            let busy = after.iter().filter(|(name, _)| *name != "idle_ns").map(|(_, ns)| ns);
            assert_eq!(pair[1]["busy_ns"], busy.sum::<u64>(), "{pair:?}");
        }
        if worker_snapshots.iter().any(|worker| worker["asleep"] == false) {
            continue;
        }
        // A snapshot reads the clock shortly before it queries the workers, and after the previous
        // snapshot has queried them.
        let sums = worker_snapshots.map(|worker| stages_of(worker).values().sum::<u64>());
        assert!(sums[1] - sums[0] <= times[2] - times[0], "{sums:?} at {times:?}");
        assert!(sums[2] - sums[0] >= times[2] - times[1], "{sums:?} at {times:?}");
    }
}

#[test]
fn stages_are_metrics_and_a_table() {
    let rig = Rig::new().unwrap();
    let (daemon, _guests) = private_lan(&rig, &[("a", "")]).unwrap();
    let metrics = daemon.http("GET", "/metrics", None).unwrap().text;
    let table = daemon.ok(&["top", "--stages", "--once", "--interval", "100"]).unwrap();
    for stage in [
        "copy_in", "classify", "coalesce", "segment", "checksum", "copy_out", "notify", "poll",
        "idle",
    ] {
        let series = format!("suimon_worker_stage_seconds_total{{worker=\"0\",stage=\"{stage}\"}}");
        assert!(metrics.contains(&series), "{series} is missing in:\n{metrics}");
        let column = stage.replace('_', " ").to_uppercase();
        assert!(table.contains(&column), "{column} is missing in:\n{table}");
    }
}
