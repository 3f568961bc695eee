//! Clients that go on when the process that served them was killed, with another one: to them
//! everything that was answered has happened.

use suimon_ports::DiskOutcome;

use crate::fakes::FakeQueue;
use crate::kinds::{KINDS, Kind};
use crate::work_tests::{Bench, Model, TAGS};

/// Runs a client, and after each turn looks what the next process would find.
fn run(kind: Kind, seed: u64, capacity: usize) {
    let mut queue = FakeQueue::new(TAGS);
    queue.outlives_process = true;
    let mut bench = Bench::with_queue(kind, (kind.create)(), seed, capacity, queue);
    let mut model = Model::new(seed);
    for _ in 0..120 {
        for _ in 0..model.dice.below(6) {
            model.ask(&bench);
        }
        let mut has_answers = false;
        for (tag, outcome) in bench.poll() {
            assert_eq!(outcome, DiskOutcome::Done, "{}: seed {seed}", kind.name);
            let asked = model.under_way.get(&tag).copied();
            model.handle_answer(&bench, tag);
            for sector in asked.map(|(_, range, _)| model.of(range)).into_iter().flatten() {
                sector.handle_durable(sector.answered);
                has_answers = true;
            }
        }
        if has_answers {
            // What a killed process has handed to the kernel stays, synced or not.
            model.check_crash(kind, bench.file.memory().bytes());
        }
    }
}

#[test]
fn what_was_answered_is_there_for_the_next_process() {
    for kind in KINDS {
        for seed in 0..6 {
            run(kind, seed, [3, 64][seed as usize % 2]);
        }
    }
}
