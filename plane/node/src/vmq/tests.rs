//! VMQ on a simulated switching plane, in simulated time.

use std::collections::BTreeSet;

use suimon_contract::{Event, PowerConfig, PowerPlanName};
use suimon_quantity::{Direction, QueueId, WorkerId};

use crate::testing::{Harness, host, wait_until};
use crate::vmq::bench::{Bench, PERIOD, lan};
use crate::{ChangeOptions, Edit, SwitchPlane};

const NICS: [(&str, &str); 4] = [("a", ""), ("b", ""), ("c", ""), ("d", "")];

fn count(events: &[Event], id: u32) -> usize {
    events.iter().filter(|event| event.kind_number == id).count()
}

#[test]
fn queues_spread_when_load_rises_and_are_packed_when_it_falls() {
    let mut bench = Bench::new(&lan("0, 1, 2, 3", "", &NICS));
    bench.run(8);
    let names = ["a", "b", "c", "d"];
    assert_eq!(bench.owners(names), [0; 4]);
    assert_eq!(bench.plane.moves(), 0, "new queues start where they belong");
    names.iter().for_each(|name| bench.require(name, 70));
    let events = bench.run(8);
    let mut owners = bench.owners(names);
    owners.sort_unstable();
    assert_eq!(owners, [0, 1, 2, 3], "one on each after two seconds: {events:?}");
    let moved: Vec<&Event> = events.iter().filter(|event| event.kind_number == 5001).collect();
    assert!(moved.len() >= 3, "{events:?}");
    for event in &moved {
        assert_eq!(event.fields["reason"], "vmq");
        assert_eq!(event.fields["uplink"], "wan");
        assert!(event.fields["because"].starts_with("the worker was "), "{event:?}");
        assert!(event.fields["expected_from_before_ppm"].parse::<u32>().unwrap() > 850_000);
        assert!(event.subject.starts_with("nic/"), "{event:?}");
    }
    let events = bench.run(4);
    assert_eq!(count(&events, 5004), moved.len(), "each is measured: {events:?}");
    let measured = events.iter().find(|event| event.kind_number == 5004).unwrap();
    assert!(measured.fields.contains_key("measured_to_after_ppm"), "{measured:?}");
    assert!(measured.text.contains("worker 0 100.0 % → "), "{measured:?}");
    let status = bench.status();
    assert_eq!(status.workers.len(), 4);
    for worker in &status.workers {
        assert!(worker.permitted && worker.load_ppm == 700_000, "{status:?}");
        assert_eq!(worker.other_load_ppm, 0, "{status:?}");
    }
    names.iter().for_each(|name| bench.require(name, 1));
    bench.run(40);
    assert_eq!(bench.owners(names), [0; 4], "ten seconds later: {:?}", bench.status());
    let status = bench.queue_status("d/tx/0");
    assert_eq!((status.worker, status.load_ppm), (0, 10_000), "{status:?}");
    assert!(
        !status.is_default_queue && status.reason.contains("fitted on other workers"),
        "{status:?}"
    );
    assert_eq!(bench.events().iter().filter(|event| event.kind_number == 5005).count(), 0);
}

#[test]
fn water_marks_and_parking_are_taken_from_the_power_plan() {
    let bench_with = |power: PowerConfig| {
        let mut config = lan("0, 1, 2, 3", "", &NICS);
        config.power = Some(power);
        Bench::new(&config)
    };
    let names = ["a", "b", "c", "d"];
    let balanced = PowerConfig::from_plan(PowerPlanName::Balanced);
    let mut bench = bench_with(PowerConfig { parks_workers: Some(false), ..balanced.clone() });
    bench.run(8);
    names.iter().for_each(|name| bench.require(name, 70));
    bench.run(8);
    let spread = bench.owners(names);
    names.iter().for_each(|name| bench.require(name, 1));
    bench.run(400);
    assert_eq!(bench.owners(names), spread, "none is emptied: {:?}", bench.status());

    // 60 % exceed the high-water mark of 50 %, but not the default.
    for (power, used) in
        [(balanced.clone(), 1), (PowerConfig { vmq_high_percent: Some(50), ..balanced }, 2)]
    {
        let mut bench = bench_with(power);
        bench.run(8);
        ["a", "b"].iter().for_each(|name| bench.require(name, 30));
        bench.run(8);
        let owners: BTreeSet<u16> = bench.owners(names).into_iter().collect();
        assert_eq!(owners.len(), used, "{:?}", bench.status());
    }
}

#[test]
fn one_worker_has_nothing_to_move() {
    let mut bench = Bench::new(&lan("", "", &NICS));
    ["a", "b", "c", "d", "wan"].iter().for_each(|name| bench.require(name, 90));
    assert_eq!(bench.run(400), []);
    assert_eq!(bench.plane.moves(), 0);
    let status = bench.status();
    assert_eq!(status.workers[0].load_ppm, 1_000_000, "{status:?}");
    assert_eq!(status.queues.len(), 10);
}

#[test]
fn switches_without_an_uplink_have_no_vmq() {
    let config = host(
        "[host]\nprocessors = [0, 1]\n[[switch]]\nname = \"in\"\nkind = \"internal\"\n\
         host_device = \"in0\"\n[[nic]]\nname = \"a\"\nswitch = \"in\"\nbackend = \"tap\"\n\
         device = \"a\"\n",
    );
    let mut bench = Bench::new(&config);
    bench.plane.move_queue(bench.queue("a"), WorkerId(1)).unwrap();
    bench.require("a", 100);
    assert_eq!(bench.run(100), []);
    assert_eq!(bench.owners(["a"]), [1]);
    assert_eq!(bench.shared.vmqs(), []);
    assert!(bench.shared.vmq("wan").is_err());
}

#[test]
fn a_failed_move_is_reported_and_retried() {
    let mut bench = Bench::new(&lan("0, 1", "", &[("a", ""), ("b", "")]));
    bench.run(4);
    ["a", "b"].iter().for_each(|name| bench.require(name, 60));
    bench.plane.refuse_moves(true);
    let events = bench.run(4);
    let failed = events.iter().find(|event| event.kind_number == 5005).unwrap();
    assert_eq!((failed.fields["from"].as_str(), failed.fields["to"].as_str()), ("0", "1"));
    assert!(failed.fields["error"].contains("the queue does not exist"), "{failed:?}");
    assert_eq!(count(&events, 5001), 0);
    let queue = failed.fields["queue"].clone();
    assert!(bench.queue_status(&queue).reason.contains("failed"));
    bench.plane.refuse_moves(false);
    let events = bench.run(24);
    assert_eq!(count(&events, 5001), 1, "{events:?}");
    assert_ne!(bench.owners(["a"]), bench.owners(["b"]));
}

/// The plane reports a queue as moved before its worker has released it.
#[test]
fn a_move_that_is_confirmed_late_is_reported_as_a_move() {
    let mut bench = Bench::new(&lan("0, 1", "", &[("a", ""), ("b", "")]));
    bench.run(4);
    ["a", "b"].iter().for_each(|name| bench.require(name, 60));
    bench.plane.confirm_moves_late();
    let events = bench.run(8);
    assert_eq!((count(&events, 5001), count(&events, 5005)), (1, 0), "{events:?}");
    assert_ne!(bench.owners(["a"]), bench.owners(["b"]));
    let moved = events.iter().find(|event| event.kind_number == 5001).unwrap();
    assert!(moved.fields["late"].contains("not confirmed in time"), "{moved:?}");
    let status = bench.queue_status(&moved.fields["queue"]);
    assert_eq!(status.worker.to_string(), moved.fields["to"]);
}

#[test]
fn weight_0_and_disabled_vmq_mean_the_base_worker() {
    let nics = [("a", "vmq_weight = 0"), ("b", "")];
    let base = "base_processor = 1";
    let mut bench = Bench::new(&lan("0, 1, 2", base, &nics));
    bench.run(2);
    assert_eq!(bench.owners(["a", "b"]), [1, 1], "the queues start on the base worker");
    ["a", "b"].iter().for_each(|name| bench.require(name, 80));
    bench.run(8);
    assert_eq!(bench.owners(["a", "b"]), [1, 2]);
    assert!(bench.queue_status("a/tx/0").is_default_queue);
    // One NIC gets its own queue, and the other one returns to the default queue.
    bench.apply(&lan("0, 1, 2", base, &[("a", ""), ("b", "vmq_weight = 0")]));
    bench.run(8);
    assert_eq!(bench.owners(["a", "b"]), [2, 1]);
    bench.apply(&lan("0, 1, 2", "enabled = false", &nics));
    bench.run(8);
    assert_eq!(bench.owners(["a", "b", "wan"]), [0, 0, 0]);
    assert!(bench.status().queues.iter().all(|queue| queue.is_default_queue));
}

#[test]
fn a_specification_is_changed_live() {
    let mut bench = Bench::new(&lan("0, 1, 2, 3", "", &NICS));
    let names = ["a", "b", "c", "d"];
    names.iter().for_each(|name| bench.require(name, 70));
    bench.run(12);
    bench.apply(&lan("0, 1, 2, 3", "max_processors = 2", &NICS));
    bench.run(1);
    let mut owners = bench.owners(names);
    owners.sort_unstable();
    owners.iter().for_each(|owner| assert!(*owner < 3, "{owners:?}"));
    assert_eq!(owners.iter().collect::<BTreeSet<_>>().len(), 2, "{owners:?}");
    bench.apply(&lan("0, 1, 2, 3", "", &NICS));
    bench.run(8);
    let mut owners = bench.owners(names);
    owners.sort_unstable();
    assert_eq!(owners, [0, 1, 2, 3]);
    // CPUs 1 and 3 are on NUMA node 1.
    bench.apply(&lan("0, 1, 2, 3", "numa_node = 1", &NICS));
    bench.run(1);
    assert!(bench.owners(names).iter().all(|owner| owner % 2 == 1));
    let permitted: Vec<bool> =
        bench.status().workers.iter().map(|worker| worker.permitted).collect();
    assert_eq!(permitted, [false, true, false, true]);
    bench.apply(&lan("0, 1, 2, 3", "mode = \"static\"", &NICS));
    let events = bench.run(2);
    assert!(events.last().unwrap().text.contains("assigned again"), "{:?}", events.last());
    let moves_before = bench.plane.moves();
    names.iter().for_each(|name| bench.require(name, 1));
    bench.run(100);
    assert_eq!(bench.plane.moves(), moves_before, "static queues stay");
}

#[test]
fn workers_without_a_cpu_have_different_numbers() {
    let mut bench = Bench::new(&lan("floating_processors = 4", "", &NICS));
    let names = ["a", "b", "c", "d"];
    names.iter().for_each(|name| bench.require(name, 70));
    bench.run(12);
    let mut owners = bench.owners(names);
    owners.sort_unstable();
    assert_eq!(owners, [0, 1, 2, 3]);
    let numbers: Vec<u16> = bench.status().workers.iter().map(|worker| worker.worker).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    bench.apply(&lan("floating_processors = 2", "", &NICS));
    bench.run(12);
    assert!(bench.owners(names).iter().all(|owner| *owner < 2), "{:?}", bench.status());
}

#[test]
fn workers_are_started_and_stopped() {
    let mut bench = Bench::new(&lan("0, 1, 2", "", &NICS));
    let names = ["a", "b", "c", "d"];
    names.iter().for_each(|name| bench.require(name, 60));
    bench.run(12);
    bench.apply(&lan("2", "", &NICS));
    bench.run(4);
    assert_eq!(bench.owners(names), [2; 4], "CPU 2 is still the plane's processor 2");
    assert_eq!(bench.status().workers.len(), 1);
    // The configuration numbers CPUs from 0 in its own order, the plane by creation: CPU 3 gets id
    // 0, and CPU 2 keeps id 2.
    bench.apply(&lan("3, 2", "base_processor = 1", &NICS));
    bench.run(8);
    assert_eq!(bench.owners(names), [2; 4], "{:?}", bench.events());
    let permitted: Vec<_> = bench.status().workers.iter().map(|worker| worker.permitted).collect();
    assert_eq!(permitted, [false, true]);
    bench.apply(&lan("3, 2", "", &NICS));
    bench.run(12);
    let owners = bench.owners(names);
    assert_eq!(owners.iter().filter(|owner| **owner == 0).count(), 2, "{owners:?}");
    names.iter().for_each(|name| bench.require(name, 0));
    bench.run(60);
    assert_eq!(bench.owners(names), [0; 4], "packed to CPU 3");
    let status = bench.queue_status("a/tx/0");
    assert!(!status.reason.is_empty() && !status.stay_reason.is_empty());
}

#[test]
fn workers_that_only_get_other_numbers_keep_their_queues() {
    let mut bench = Bench::new(&lan("0, 1, 2", "", &NICS));
    let names = ["a", "b", "c", "d"];
    names.iter().for_each(|name| bench.require(name, 40));
    bench.run(12);
    let (owners, moves) = (bench.owners(names), bench.plane.moves());
    bench.apply(&lan("2, 0, 1", "", &NICS));
    bench.run(12);
    assert_eq!((bench.owners(names), bench.plane.moves()), (owners, moves));
    bench.apply(&lan("2, 0, 1", "max_processors = 1", &NICS));
    bench.run(4);
    let owner = bench.owners(["a"])[0];
    assert_eq!(bench.owners(names), [owner; 4]);
    names.iter().for_each(|name| bench.require(name, 1));
    bench.apply(&lan("2, 0, 1", "max_processors = 1\nmax_processor_number = 0", &NICS));
    bench.run(4);
    assert_eq!(bench.owners(names), [2; 4], "number 0 is now on CPU 2");
}

#[test]
fn nics_and_queues_are_added_and_removed() {
    let mut bench = Bench::new(&lan("0, 1", "", &NICS));
    bench.run(2);
    let second = QueueId { index: 1, ..bench.queue("a") };
    bench.plane.attach(second);
    bench.run(1);
    assert!(
        !bench.status().queues.iter().any(|queue| queue.queue == "a/tx/1"),
        "the NIC has one queue"
    );
    let mut nics = NICS;
    nics[0].1 = "queues = 2";
    bench.apply(&lan("0, 1", "", &nics));
    bench.run(1);
    assert_eq!(bench.queue_status("a/tx/1").worker, 0);
    bench.required.insert(second, PERIOD * 3 / 5);
    bench.require("a", 60);
    bench.run(8);
    assert_ne!(bench.plane.owner(second), bench.owners(["a"])[0]);
    // After a restart of a guest its queues start on the initial worker.
    for queue in [second, bench.queue("a")] {
        bench.plane.detach(queue);
        bench.plane.attach(queue);
    }
    bench.required.clear();
    bench.run(1);
    assert_eq!(bench.owners(["a"]), [0]);
    assert_eq!(bench.queue_status("a/tx/1").reason, "first assigned there");
    bench.plane.detach(second);
    bench.run(1);
    assert!(!bench.status().queues.iter().any(|queue| queue.queue == "a/tx/1"));
    bench.apply(&lan("0, 1", "", &nics[1..]));
    bench.run(1);
    assert!(!bench.status().queues.iter().any(|queue| queue.nic.as_str() == "a"));
    assert_eq!(bench.status().queues.len(), 8);
    bench.apply(&host(""));
    assert_eq!(bench.run(1), bench.events());
    assert_eq!(bench.shared.vmqs(), []);
}

#[test]
fn a_queue_moved_by_an_operator_is_treated_as_any_other() {
    let mut bench = Bench::new(&lan("0, 1", "", &NICS));
    ["a", "b"].iter().for_each(|name| bench.require(name, 35));
    bench.run(8);
    bench.plane.move_queue(bench.queue("a"), WorkerId(1)).unwrap();
    assert_eq!(bench.run(100), [], "the queue stays without events");
    let status = bench.queue_status("a/tx/0");
    assert_eq!(
        (status.worker, status.reason.as_str()),
        (1, "moved there by another cause than VMQ")
    );
    bench.require("a", 5);
    bench.require("b", 5);
    bench.run(40);
    assert_eq!(bench.owners(["a", "b"]), [0, 0]);
}

#[test]
fn a_team_is_placed_as_an_uplink_is() {
    let text = "[host]\nprocessors = [0, 1]\n[[uplink]]\nname = \"e0\"\ndevice = \"e0\"\n\
                [[uplink]]\nname = \"e1\"\ndevice = \"e1\"\n[[team]]\nname = \"wan\"\n\
                members = [\"e0\", \"e1\"]\nmode = \"switch-independent\"\n[team.vmq]\n\
                base_processor = 1\n[[switch]]\nname = \"lan\"\nkind = \"external\"\n\
                uplink = \"wan\"\n[[nic]]\nname = \"a\"\nswitch = \"lan\"\nbackend = \"tap\"\n\
                device = \"a\"\n";
    let bench = Bench::new(&host(text));
    bench.run(4);
    assert_eq!(bench.owners(["a"]), [1]);
    assert_eq!(bench.status().config.base_worker, Some(1));
    assert!(bench.status().queues.iter().any(|queue| queue.nic.as_str() == "a"));
}

#[test]
fn workers_that_the_host_does_not_have_are_rejected_before_any_change() {
    let harness = Harness::new();
    harness.apply_ok(&lan("0, 1", "", &NICS));
    let cases = [
        ("0, 1", "numa_node = 2", "vmq.numa_node", "set one of 0, 1"),
        ("0, 2", "numa_node = 1", "vmq.numa_node", "set one of 0"),
        ("", "numa_node = 1", "vmq.numa_node", "set one of 0"),
        (
            "0, 1",
            "numa_node = 1\nbase_worker = 0",
            "vmq.base_worker",
            "base_worker 0 is not on numa_node 1; set one of 1",
        ),
        ("0, 1", "numa_node = 1\nmax_worker_number = 0", "vmq.max_worker_number", "set 1"),
    ];
    for (workers, vmq, field, text) in cases {
        let edit = Edit::Apply(Box::new(lan(workers, vmq, &NICS)));
        let errors = harness.node.preview(&edit, ChangeOptions::default()).unwrap_err();
        assert_eq!(errors[0].field.as_deref(), Some(field), "{errors:?}");
        assert_eq!(errors[0].resource.as_deref(), Some("uplink/wan"));
        assert!(errors[0].message.contains(text), "{errors:?}");
    }
}

#[test]
fn the_control_thread_drives_vmq() {
    let harness = Harness::new();
    // A running clock is needed: without elapsed time nothing is measured, and a queue that is
    // found by the first measurement stays where it is.
    harness.plane.run_clock();
    let config = lan("0, 1", "base_processor = 1", &[("a", "")]);
    harness.apply_ok(&config);
    let tap = harness.ports().into_iter().find(|(claim, _)| claim.contains("\"a\"")).unwrap().1;
    let queue = QueueId { port: tap, direction: Direction::Ingress, index: 0 };
    harness.plane.attach(queue);
    assert_eq!(harness.plane.owner(queue), 1, "the queue starts on the base worker");
    let mut other = config.clone();
    other.uplinks[0].vmq.base_worker = None;
    other.uplinks[0].vmq.enabled = false;
    harness.apply_ok(&other);
    wait_until("the queue is on worker 0", || harness.plane.owner(queue) == 0);
    wait_until("QueueMoved is emitted", || !harness.events(5001).is_empty());
    assert_eq!(harness.wait_event(5001).fields["reason"], "vmq");
    let status = harness.node.vmq("wan").unwrap();
    assert_eq!((status.queues.len(), status.queues[0].worker), (1, 0));
    assert_eq!(status.queues[0].nic.as_str(), "a");
}
