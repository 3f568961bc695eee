//! However the lab ends, it leaves no resources behind and keeps the completed measurements.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use suimon_rig::{Rig, program, run_any, wait_for_value, wait_until};

const PATIENCE: Duration = Duration::from_secs(240);

/// Plan of two short cases, of which the second begins after some seconds.
const PLAN: &str = r#"
id = "short"
kind = "vmq"
document = "W12-VMQ"
title = { en = "Short", ja = "短い" }
question = { en = "?", ja = "?" }
published = { en = "", ja = "" }
[settings]
guests = 1
uplinks = 2
processors = 2
max_processors = 2
modes = ["switch-independent"]
algorithms = ["hyper-v-port", "dynamic"]
phase = [{ seconds = 3, sessions = 1 }]
"#;

struct Bench {
    rig: Rig,
    plan: String,
    results: String,
}

impl Bench {
    fn new() -> Self {
        let rig = Rig::new().unwrap();
        let (plan, results) = (rig.path("short.toml"), rig.path("results"));
        fs::write(&plan, PLAN).unwrap();
        Self { rig, plan, results }
    }

    fn start(&self) -> Child {
        let mut lab = Command::new(program("suimon-lab").unwrap());
        lab.args(["run", &self.plan, "--results", &self.results]);
        lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Waits until `count` repetitions were measured and the next one is in progress. Returns the
    /// run's folder.
    fn wait_parts(&self, lab: &Child, count: usize) -> String {
        wait_for_value("a running repetition", PATIENCE, || {
            let Ok(mut entries) = fs::read_dir(&self.results) else { return Ok(None) };
            let Some(entry) = entries.next() else { return Ok(None) };
            let folder = entry?.path();
            let lines = fs::read_to_string(folder.join("parts.jsonl")).unwrap_or_default();
            let is_there = lines.lines().count() == count && !namespaces(worker_of(lab)).is_empty();
            Ok(is_there.then(|| folder.to_string_lossy().into_owned()))
        })
        .unwrap()
    }

    fn resume(&self, folder: &str) -> Value {
        let arguments = [
            &program("suimon-lab").unwrap(),
            "run",
            "--resume",
            folder,
            "--results",
            &self.results,
        ];
        let output = run_any(&arguments, PATIENCE).unwrap();
        assert!(output.is_ok(), "{}{}", output.stdout, output.stderr);
        serde_json::from_str(&fs::read_to_string(format!("{folder}/run.json")).unwrap()).unwrap()
    }
}

/// Returns the namespaces created by one worker process.
fn namespaces(worker: u32) -> Vec<String> {
    let prefix = format!("smr-{worker}-");
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Returns the id of the lab's worker process, a child of the started one; 0 if there is none yet.
fn worker_of(lab: &Child) -> u32 {
    let id = lab.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    children.split_whitespace().next().map_or(0, |pid| pid.parse().unwrap())
}

fn an_interrupted_run_keeps_its_results_and_continues() {
    let bench = Bench::new();
    let mut lab = bench.start();
    let folder = bench.wait_parts(&lab, 1);
    let before = fs::read_to_string(format!("{folder}/parts.jsonl")).unwrap();
    let worker = worker_of(&lab);
    signal(lab.id(), Signal::INT);
    assert_eq!(lab.wait().unwrap().code(), Some(130));
    assert_eq!(namespaces(worker), Vec::<String>::new());
    assert!(!Path::new(&folder).join("run.json").exists());
    let run = bench.resume(&folder);
    let parts = run["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    // The first repetition is the one measured before the interruption.
    let first: Value = serde_json::from_str(before.lines().next().unwrap()).unwrap();
    assert_eq!(parts[0], first);
    assert!(Path::new(&folder).join("report.html").exists());
}

fn nothing_remains_when_any_process_of_a_run_is_killed() {
    for kills_worker in [true, false] {
        let bench = Bench::new();
        let mut lab = bench.start();
        bench.wait_parts(&lab, 0);
        let worker = worker_of(&lab);
        signal(if kills_worker { worker } else { lab.id() }, Signal::KILL);
        lab.wait().unwrap();
        wait_until("the end of the worker's processes", PATIENCE, || {
            Ok(namespaces(worker).is_empty())
        })
        .unwrap();
        wait_until("the end of the worker", PATIENCE, || {
            Ok(!Path::new(&format!("/proc/{worker}")).exists())
        })
        .unwrap();
        drop(bench.rig);
    }
}

#[test]
fn a_tool_that_fails_is_named_with_its_words() {
    let bench = Bench::new();
    let tools = bench.rig.path("tools");
    fs::create_dir(&tools).unwrap();
    let tool = format!("{tools}/iperf3");
    fs::write(&tool, "#!/bin/sh\necho 'no luck today' >&2\nexit 3\n").unwrap();
    run_any(&["chmod", "+x", &tool], PATIENCE).unwrap();
    let path = format!("PATH={tools}:/usr/sbin:/usr/bin:/sbin:/bin");
    let lab = program("suimon-lab").unwrap();
    let arguments = ["env", &path, &lab, "run", &bench.plan, "--results", &bench.results];
    let output = run_any(&arguments, PATIENCE * 2).unwrap();
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains("no measurement completed"), "{}", output.stderr);
    assert!(output.stderr.contains("no luck today"), "{}", output.stderr);
}

#[test]
fn an_unusable_results_folder_is_reported_before_anything_starts() {
    let bench = Bench::new();
    let lab = program("suimon-lab").unwrap();
    let arguments = [&lab, "run", &bench.plan, "--results", "/proc/nowhere"];
    let output = run_any(&arguments, PATIENCE).unwrap();
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("--results DIR"), "{}", output.stderr);
    let arguments = [&lab, "run", "nothing-like-it", "--results", &bench.results];
    let output = run_any(&arguments, PATIENCE).unwrap();
    assert_eq!(output.code, 3);
    assert!(output.stderr.contains("no plan `nothing-like-it`"), "{}", output.stderr);
}

mod full {
    #[test]
    fn an_interrupted_run_keeps_its_results_and_continues() {
        super::an_interrupted_run_keeps_its_results_and_continues();
    }

    #[test]
    fn nothing_remains_when_any_process_of_a_run_is_killed() {
        super::nothing_remains_when_any_process_of_a_run_is_killed();
    }
}
