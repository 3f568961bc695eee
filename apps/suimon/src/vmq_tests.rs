use clap::Parser;
use serde_json::Value;
use suimon_contract::{VmqConfig, VmqMode};

use super::*;

#[derive(Parser)]
struct Vmq {
    #[command(subcommand)]
    verb: VmqVerb,
}

fn patch(args: &[&str]) -> Result<Value, Failure> {
    let parsed = Vmq::parse_from(["x", "set", "both"].iter().chain(args));
    let VmqVerb::Set(flags) = parsed.verb else { panic!("another verb") };
    settings::table(&flags.settings).map(Value::Object)
}

fn wrong(args: &[&str]) -> String {
    match Vmq::try_parse_from(["x", "set", "both"].iter().chain(args)) {
        Ok(_) => panic!("accepted: {args:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn set_sends_only_the_keys_that_were_named_each_as_its_type() {
    let sent = ["enabled=off", "mode=static", "base_worker=2", "numa_node=default"];
    assert_eq!(
        patch(&sent).unwrap(),
        json!({"enabled": false, "mode": "static", "base_worker": 2, "numa_node": null})
    );
    let twice = patch(&["mode=static", "mode=dynamic"]).unwrap_err();
    assert_eq!(
        (twice.code(), twice.to_string()),
        (2, "`mode` is given twice; give it once".to_owned())
    );
}

#[test]
fn what_is_wrong_is_named_with_the_choices() {
    let keys = "the keys are enabled, mode, base_worker, max_workers, \
                max_worker_number, numa_node";
    let message = wrong(&["processors=2"]);
    assert!(message.contains(&format!("no key `processors` exists; {keys}")), "{message}");
    let message = wrong(&["enabled"]);
    assert!(message.contains(&format!("must be KEY=VALUE or KEY=default; {keys}")), "{message}");
    let message = wrong(&["enabled=yes"]);
    assert!(message.contains("`enabled` must be on, off or default, not `yes`"), "{message}");
    let message = wrong(&["max_workers=0"]);
    let expected = "`max_workers` must be a whole number from 1 to 64 or default, not `0`";
    assert!(message.contains(expected), "{message}");
    let message = wrong(&["mode=adaptive"]);
    assert!(message.contains("or default, not `adaptive`"), "{message}");
    assert!(wrong(&[]).contains("KEY=VALUE|default"));
}

fn worker(number: u16, permitted: bool, queues: u32, load_ppm: u32) -> VmqWorkerStatus {
    let worker = number;
    VmqWorkerStatus { worker, permitted, queues, load_ppm, other_load_ppm: 10_000 }
}

fn queue(name: &str, worker: u16, load_ppm: u32) -> VmqQueueStatus {
    VmqQueueStatus {
        queue: name.to_owned(),
        nic: name.split('/').next().unwrap_or_default().parse().unwrap(),
        default_queue: name.starts_with("light"),
        worker,
        load_ppm,
        age_s: 75,
        reason: "first assigned there".to_owned(),
        stay_reason: "the default queue is not moved".to_owned(),
    }
}

fn vmqs() -> [VmqStatus; 2] {
    let busy = VmqStatus {
        uplink: "both".parse().unwrap(),
        config: VmqConfig { base_worker: Some(1), ..VmqConfig::default() },
        workers: vec![
            worker(0, false, 0, 20_000),
            worker(1, true, 2, 251_400),
            worker(2, true, 1, 904_000),
            worker(3, true, 0, 0),
            worker(4, false, 1, 10_000),
        ],
        queues: vec![queue("light/rx/0", 1, 6_000), queue("web/rx/0", 2, 893_960)],
    };
    let off = VmqStatus {
        uplink: "wan".parse().unwrap(),
        config: VmqConfig { enabled: false, mode: VmqMode::Static, ..VmqConfig::default() },
        workers: vec![worker(0, true, 0, 0)],
        queues: Vec::new(),
    };
    [busy, off]
}

#[test]
fn teams_and_uplinks_are_a_line_each() {
    insta::assert_snapshot!(table(&vmqs()).render());
}

#[test]
fn queues_are_shown_with_their_workers_and_nics() {
    let [busy, off] = vmqs();
    insta::assert_snapshot!(details(&busy));
    insta::assert_snapshot!(details(&off));
}

#[test]
fn an_explanation_is_a_sentence_for_each_queue() {
    let queue = &vmqs()[0].queues[0];
    insta::assert_snapshot!(explanation(queue), @"light/rx/0 takes 0.6 % of worker 1 and has been \
                                                  there for 1 min 15 s: first assigned there. It \
                                                  is not moved: the default queue is not moved.");
}
