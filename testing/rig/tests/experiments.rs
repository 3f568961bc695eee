//! Plans run to their end and record what they say, on small disks and for
//! seconds. What figures come out is for `make experiment`.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Rig, program, run, run_any};

const PLAN_LIMIT: Duration = Duration::from_secs(120);

/// Runs a plan; returns its record and its summary.
fn experiment(rig: &Rig, name: &str, plan: &str) -> (Value, String) {
    let file = rig.path(&format!("{name}.toml"));
    fs::write(&file, plan).unwrap();
    let folder = format!("SUIMON_EXPERIMENT_FOLDER={}", rig.folder().display());
    let command = ["env", &folder, &program("experiment").unwrap(), &file];
    let output = run_any(&command, PLAN_LIMIT).unwrap();
    // What it prints says why a run did not reach its end.
    assert!(output.is_ok(), "{}", output.stdout);
    let summary = output.stdout;
    let record = fs::read_to_string(rig.path(&format!("{name}.json"))).unwrap();
    (serde_json::from_str(&record).unwrap(), summary)
}

#[test]
fn qos_on_a_host_is_recorded_every_second_and_maximums_hold() {
    let rig = Rig::new().unwrap();
    let plan = r#"
        kind = "qos-host"
        name = "short"
        folder = "/var/tmp"
        # A busy machine does so much.
        store_bytes_per_s = 40_000_000
        store_depth_max = 2
        format = "vhdx"
        disk_kind = "fixed"
        disk_mib = 32
        block_kib = 64
        depth = 1
        calibration_s = 2
        document_iops = 18_000
        group = [{ name = "low", disks = 2 }, { name = "high", disks = 2 }]
        [[step]]
        name = "nothing"
        seconds = 3
        limits = [{}, {}]
        published = ["", ""]
        [[step]]
        name = "all"
        seconds = 3
        limits = [{ max_iops = 2000 }, { min_iops = 6000 }]
        published = ["", ""]
    "#;
    let (record, summary) = experiment(&rig, "short", plan);
    println!("{summary}");
    assert_eq!(record["failure"], Value::Null);
    let scale = record["calibration"]["scale"].as_f64().unwrap();
    let most = (2000.0 * scale).round();
    assert_eq!(record["steps"][1]["limits"][0]["max_iops"].as_f64().unwrap(), most);
    // Three seconds to warm up, two of calibration, three of each step and its change.
    let seconds = record["seconds"].as_array().unwrap();
    assert_eq!(seconds.len(), 3 + 2 + 4 + 4);
    for second in seconds {
        let disks = second["disks"].as_array().unwrap();
        assert_eq!(disks.len(), 4);
        assert_eq!(disks[3]["disk"], "vm04");
    }
    let has_fio = |of: &&Value| of["disks"][0]["fio_iops"].is_f64();
    assert!(seconds.iter().filter(has_fio).count() >= 8, "{summary}");
    let last = &seconds.last().unwrap()["disks"][2]["last_5_s"];
    assert!(last["delivered_iops"].as_u64().unwrap() > 0, "{last}");
    assert!(last["entitled_iops"].as_u64().unwrap() > 0, "{last}");

    let verdicts = record["verdicts"].as_array().unwrap();
    assert_eq!(verdicts.len(), 4);
    let maximum = &verdicts[2]["maximum"];
    // Looks at the counters are as late as the machine is busy; a maximum is not.
    let highest = maximum["highest_window"].as_f64().unwrap();
    assert!(highest > 0.0 && highest < 1.15, "{summary}");
    assert_eq!(verdicts[3]["minimum"]["disks"], 2);
    assert!(summary.contains("| all | high | minimum 6000 |"), "{summary}");
}

#[test]
fn disks_are_measured_beside_native_ones() {
    let rig = Rig::new().unwrap();
    let plan = r#"
        kind = "disk-io"
        name = "formats"
        folder = "/var/tmp"
        disk_mib = 16
        ways = ["engine", "vhost-user", "vhost-user-waiting", "nbd"]
        targets = ["raw", "vhdx-dynamic", "pass-through"]
        depths = [4]
        window_ms = 200
        rounds = 1
        [[pattern]]
        name = "mixed"
        block_kib = 8
        read_percent = 67
        random = true
    "#;
    let (record, summary) = experiment(&rig, "formats", plan);
    println!("{summary}");
    assert_eq!(record["failure"], Value::Null);
    let subjects: Vec<&str> = record["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["subject"].as_str().unwrap())
        .collect();
    let mut expected = vec!["native file".to_owned(), "native loop device".to_owned()];
    for way in [", engine alone", " over vhost-user", " over vhost-user, waiting", " over NBD"] {
        let of_way = ["raw", "vhdx-dynamic", "pass-through"].map(|disk| format!("{disk}{way}"));
        expected.extend(of_way);
    }
    assert_eq!(subjects, expected);
    for of in record["comparisons"].as_array().unwrap() {
        assert!(of["iops"]["median"].as_f64().unwrap() > 0.0, "{of}");
    }
    let series = fs::read_to_string(rig.path("formats.csv")).unwrap();
    assert_eq!(series.lines().count(), 1 + expected.len() - 2, "{series}");
    assert!(!run(&["losetup", "--list"]).unwrap().contains("suimon-experiment"));
}

#[test]
fn power_plans_are_measured_one_after_the_other() {
    let rig = Rig::new().unwrap();
    let plan = r#"
        kind = "power-plan"
        name = "power"
        folder = "/var/tmp"
        disk_mib = 16
        plans = ["power-saver", "balanced"]
        sessions = 2
        window_ms = 200
        rounds = 1
    "#;
    let (record, summary) = experiment(&rig, "power", plan);
    println!("{summary}");
    assert_eq!(record["failure"], Value::Null);
    let samples = record["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 2 * 4);
    for sample in samples {
        let is_idle = sample["load"] == "nothing";
        assert_eq!(sample["per_second"].as_f64().is_some_and(|rate| rate > 0.0), !is_idle);
        assert_eq!(sample["cpu_us_each"].as_f64().is_some_and(|us| us > 0.0), !is_idle);
    }
    // Watts are told, or why they are not.
    let missing = record["missing"]["balanced"].to_string();
    assert_eq!(samples[0]["watts"].is_null(), missing.contains("energy: "), "{missing}");
    assert!(summary.contains("| reads over NBD | power-saver |"), "{summary}");
}

/// The adapter and all CPUs are emulated: what is compared is the work of the daemon's processors.
#[test]
fn a_vf_costs_the_hosts_processors_a_tenth_at_most_of_what_the_switch_costs() {
    let rig = Rig::new().unwrap();
    let plan = "kind = \"sriov-host-cpu\"\nname = \"short\"\nmib = 8\nrounds = 1\n";
    let (record, summary) = experiment(&rig, "short", plan);
    println!("{summary}");
    let samples = record["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 4);
    for direction in ["sends", "receives"] {
        let per_byte = |path: &str| {
            let is_it = |of: &&Value| of["path"] == path && of["direction"] == direction;
            let sample = samples.iter().find(is_it).unwrap();
            let stages = sample["stages_ns"].as_object().unwrap().values();
            let ns: u64 = stages.map(|ns| ns.as_u64().unwrap()).sum();
            ns as f64 / sample["bytes"].as_u64().unwrap() as f64
        };
        let (switch, vf) = (per_byte("switch"), per_byte("vf"));
        assert!(vf * 10.0 < switch, "{direction}: {vf} beside {switch} ns a byte");
    }
}
