use suimon_contract::{VmqConfig, VmqMode};

use super::*;

fn worker(number: u16, permitted: bool, queues: u32, load_ppm: u32) -> VmqWorkerStatus {
    let worker = number;
    VmqWorkerStatus { worker, permitted, queues, load_ppm, other_load_ppm: 10_000 }
}

fn queue(name: &str, worker: u16, load_ppm: u32) -> VmqQueueStatus {
    VmqQueueStatus {
        queue: name.to_owned(),
        nic: name.split('/').next().unwrap_or_default().parse().unwrap(),
        is_default_queue: name.starts_with("light"),
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
    let disabled = VmqStatus {
        uplink: "wan".parse().unwrap(),
        config: VmqConfig { enabled: false, mode: VmqMode::Static, ..VmqConfig::default() },
        workers: vec![worker(0, true, 0, 0)],
        queues: Vec::new(),
    };
    [busy, disabled]
}

#[test]
fn teams_and_uplinks_are_a_line_each() {
    insta::assert_snapshot!(table(&vmqs()).render());
}

#[test]
fn queues_are_shown_with_their_workers_and_nics() {
    let [busy, disabled] = vmqs();
    insta::assert_snapshot!(details(&busy));
    insta::assert_snapshot!(details(&disabled));
}

#[test]
fn an_explanation_is_a_sentence_for_each_queue() {
    let queue = &vmqs()[0].queues[0];
    insta::assert_snapshot!(explanation(queue), @"light/rx/0 takes 0.6 % of worker 1 and has been \
                                                  there for 1 min 15 s: first assigned there. It \
                                                  is not moved: the default queue is not moved.");
}
