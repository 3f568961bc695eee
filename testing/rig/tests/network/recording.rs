//! A daemon records its policies, and replaying the recording results in the same decisions.

use std::fs;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{DaemonOptions, Output, Rig, fio, iperf, program, run_any, wait_until};

use crate::bridged::{Bridged, FAR};

/// Deadline of every condition and command. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(120);
/// Duration of the load on the team in seconds.
const SECONDS: u32 = 4;
/// Number of requests of the load on each disk, which the slower disk completes after about 3 s.
const REQUESTS: u32 = 1500;

fn sim(arguments: &[&str]) -> Output {
    let mut command = vec![program("sim").unwrap()];
    command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    run_any(&command, LIMIT).unwrap()
}

/// Records a daemon with disks on a store that two workers share, and a team whose members change.
fn record(rig: &Rig, file: &str) {
    let (store, socket) = (rig.path("store"), rig.path("nbd.sock"));
    fs::create_dir_all(&store).unwrap();
    let mut extra = format!(
        "[host]\nworker_cpus = [0, 1]\n\
         [[store]]\nname = \"fast\"\npath = \"{store}\"\ncapacity_iops = 5000\n"
    );
    for (disk, limits) in [("calm", "{ max_iops = 400 }"), ("vip", "{ min_iops = 500 }")] {
        extra += &format!(
            "[[disk]]\nname = \"{disk}\"\nstore = \"fast\"\nformat = \"raw\"\nsize_bytes = 67108864\n\
             nbd = {{ socket = \"{socket}\" }}\nqos = {limits}\n"
        );
    }
    let arguments = vec!["--record".to_owned(), file.to_owned()];
    let options = DaemonOptions { arguments, ..DaemonOptions::default() };
    let keys = "mode = \"switch-independent\"\nalgorithm = \"dynamic\"";
    let mut bridged = Bridged::start_with(rig, keys, &extra, &options);
    let _server = iperf::serve(rig, &bridged.far).unwrap();
    thread::scope(|scope| {
        for disk in ["calm", "vip"] {
            let job =
                format!("--rw=randread --bs=4k --iodepth=8 --number_ios={REQUESTS} --size=32m");
            let socket = &socket;
            scope.spawn(move || fio::run(rig.folder(), socket, disk, &job).unwrap());
        }
        let client = &bridged.team.guests[0].namespace;
        let running = scope.spawn(|| iperf::measure(client, FAR, SECONDS, &["-P", "4"]).unwrap());
        iperf::wait_open(client, 5).unwrap();
        bridged.set_link(0, false);
        bridged.team.wait_state(0, "failed");
        bridged.set_link(0, true);
        bridged.team.wait_state(0, "active");
        let daemon = &bridged.team.daemon;
        daemon.ok(&["disk", "set", "calm", "--qos-max-iops", "1000"]).unwrap();
        running.join().unwrap();
    });
    bridged.team.daemon.ok(&["team", "set", "both", "--algorithm", "hyper-v-port"]).unwrap();
    // The bridge does not respond to LACPDUs.
    bridged.team.daemon.ok(&["team", "set", "both", "--mode", "lacp"]).unwrap();
    let lacpdus_sent = |index: usize| {
        bridged.team.status()["members"][index]["lacp"]["counters"]["lacpdus_tx"].as_u64()
    };
    let have_sent = || Ok([0, 1].into_iter().all(|index| lacpdus_sent(index) >= Some(2)));
    wait_until("LACPDUs on both members", LIMIT, have_sent).unwrap();
    assert!(bridged.team.daemon.stop().unwrap().success());
}

#[test]
fn decisions_of_a_daemon_are_reproduced_from_its_recording() {
    let rig = Rig::new().unwrap();
    let file = rig.path("recording");
    record(&rig, &file);
    let mut bytes = fs::read(&file).unwrap();
    let output = sim(&["replay", &file]);
    println!("{} bytes\n{}{}", bytes.len(), output.stdout, output.stderr);
    assert!(output.is_ok(), "{}", output.stderr);
    let replay: Value = serde_json::from_str(&sim(&["replay", &file, "--json"]).stdout).unwrap();
    let streams = replay["streams"].as_array().unwrap();
    let steps = |policy: &str, name: &str| -> u64 {
        let matching =
            streams.iter().filter(|stream| stream["policy"] == policy && stream["name"] == name);
        matching.map(|stream| stream["steps"].as_u64().unwrap()).sum()
    };
    assert!(steps("team", "both") >= 8, "{replay:#}");
    assert!(steps("lacp", "both") >= 6, "{replay:#}");
    assert!(steps("vmq", "both") >= 16, "{replay:#}");
    assert!(steps("storage-qos", "fast") >= 1000, "{replay:#}");
    assert!(streams.iter().all(|stream| stream["lost"].is_null()), "{replay:#}");

    let output = sim(&["what-if", &file, "--set", "team.both.algorithm=transport-ports"]);
    println!("{}", output.stdout);
    assert!(
        output.is_ok() && output.stdout.contains("recomputed distributions"),
        "{}",
        output.stderr
    );
    let output = sim(&["what-if", &file, "--set", "vmq.max_processors=1"]);
    println!("{}", output.stdout);
    assert!(output.is_ok(), "{}", output.stderr);
    // The store is shared by several workers.
    let output = sim(&["what-if", &file, "--set", "disk.calm.max_iops=200"]);
    assert!(output.code == 1 && output.stderr.contains("several workers"), "{output:?}");

    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let output = sim(&["replay", &file]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("was changed after it was recorded"), "{}", output.stderr);
}
