use super::*;

/// Queues in the accounting of one worker.
struct Bench {
    accounting: QueueAccounting,
    costs: Vec<QueueCost>,
    counters: Vec<Arc<QueueCounters>>,
}

impl Bench {
    fn new(queues: usize) -> Self {
        let mut bench = Self {
            accounting: QueueAccounting::default(),
            costs: Vec::new(),
            counters: Vec::new(),
        };
        for _ in 0..queues {
            let (mut cost, tally) = (QueueCost::default(), Arc::<QueueCounters>::default());
            bench.accounting.add_queue(&mut cost, &tally);
            bench.costs.push(cost);
            bench.counters.push(tally);
        }
        bench
    }

    /// Runs a round that takes `ns`, with one batch of 32 frames of 64 bytes from each of the
    /// ingress queues with these numbers.
    fn round(&mut self, ingress: &[usize], ns: u64) {
        for queue in ingress {
            self.accounting.charge_ingress(&self.costs[*queue], 32, 2048);
        }
        self.accounting.end_round(ns);
    }

    /// Runs a timed round in which the egress queues with these numbers together took `ns`.
    fn timed_egress(&mut self, egress: &[usize], ns: u64) {
        for queue in egress {
            self.accounting.charge_egress(&self.costs[*queue], 32, 2048);
        }
        self.accounting.update_egress_estimates(ns);
        self.accounting.end_round(ns);
    }

    fn learn(&mut self, queue: usize, ns: u64) {
        self.accounting.update_ingress_estimate(&self.costs[queue], (32, 2048), ns, 0);
    }

    /// Returns the total time attributed to each queue, in ns.
    fn total(&mut self) -> Vec<u64> {
        self.accounting.divide_pending_time();
        self.counters.iter().map(|tally| tally.busy_ns.value()).collect()
    }
}

/// Returns true if `parts` have the proportions of `expected`, within 1 %.
fn are_as(parts: &[u64], expected: &[u64]) -> bool {
    let total = |values: &[u64]| values.iter().sum::<u64>() as f64;
    let pairs = parts.iter().zip(expected);
    pairs.into_iter().all(|(part, expected_part)| {
        (*part as f64 / total(parts) - *expected_part as f64 / total(expected)).abs() < 0.01
    })
}

#[test]
fn a_round_is_charged_to_its_queues_only() {
    let mut bench = Bench::new(3);
    bench.round(&[1], 1000);
    bench.round(&[0, 1], 2000);
    // A round that read messages without frames.
    bench.round(&[], 70_000);
    let actual = bench.total();
    assert_eq!(actual[2], 0);
    assert!(actual.iter().sum::<u64>() <= 3000 && actual.iter().sum::<u64>() >= 2997, "{actual:?}");
    assert!(are_as(&actual, &[1, 2, 0]), "{actual:?}");
    bench.round(&[2], 500);
    assert_eq!(bench.total()[2], 500, "alone it has all of it");
}

#[test]
fn an_unfinished_round_is_not_reported() {
    let mut bench = Bench::new(1);
    bench.accounting.charge_ingress(&bench.costs[0], 1, 60);
    assert_eq!(bench.total(), [0]);
    bench.accounting.end_round(900);
    assert_eq!(bench.total(), [900]);
}

#[test]
fn queues_with_slower_frames_are_charged_more() {
    let mut bench = Bench::new(2);
    for _ in 0..100 {
        bench.learn(0, 1000);
        bench.learn(1, 9000);
    }
    bench.round(&[0, 1], 50_000);
    assert!(are_as(&bench.total(), &[1, 9]));
}

#[test]
fn egress_queues_are_distinguished_by_their_own_rounds() {
    let mut bench = Bench::new(2);
    for _ in 0..200 {
        bench.timed_egress(&[0], 3000);
        bench.timed_egress(&[1], 6000);
    }
    let before = bench.total();
    for _ in 0..1000 {
        bench.timed_egress(&[0, 1], 9000);
    }
    let together: Vec<u64> =
        bench.total().iter().zip(&before).map(|(after, before)| after - before).collect();
    assert!(are_as(&together, &[1, 2]), "{together:?}: what was learned apart stays");
}

#[test]
fn egress_to_other_workers_is_charged_to_the_ingress_queue() {
    let mut bench = Bench::new(2);
    for _ in 0..100 {
        bench.accounting.charge_ingress(&bench.costs[0], 32, 2048);
        bench.accounting.update_ingress_estimate(&bench.costs[0], (32, 2048), 1000, 2000);
        bench.accounting.charge_egress(&bench.costs[1], 32, 2048);
        // A third of the egress time was for queues of other workers.
        bench.accounting.update_egress_estimates(3000);
        bench.accounting.end_round(4000);
    }
    let before = bench.total();
    bench.accounting.charge_ingress(&bench.costs[0], 32, 2048);
    bench.accounting.charge_egress(&bench.costs[1], 32, 2048);
    bench.accounting.end_round(8000);
    let after = bench.total();
    let last: Vec<u64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
    assert!(are_as(&last, &[3, 1]), "{last:?}");
}

#[test]
fn one_round_that_was_held_up_changes_little() {
    let mut bench = Bench::new(2);
    for _ in 0..100 {
        bench.learn(0, 1000);
        bench.learn(1, 1000);
    }
    bench.learn(0, 4_000_000_000);
    bench.round(&[0, 1], 100_000);
    let actual = bench.total();
    assert!(actual[0] < 55_000, "{actual:?}");
}

#[test]
fn a_first_look_that_saw_nothing_does_not_count_for_long() {
    let mut bench = Bench::new(2);
    bench.learn(0, 0);
    for _ in 0..100 {
        bench.learn(0, 1000);
        bench.learn(1, 1000);
    }
    bench.round(&[0, 1], 100_000);
    assert!(are_as(&bench.total(), &[1, 1]));
}

#[test]
fn learned_costs_move_with_a_queue() {
    let mut bench = Bench::new(2);
    for _ in 0..100 {
        bench.learn(0, 1000);
        bench.learn(1, 3000);
    }
    bench.round(&[0, 1], 4000);
    bench.accounting.remove_queue(&mut bench.costs[0]);
    bench.accounting.remove_queue(&mut bench.costs[1]);
    let [first, second] = [0, 1].map(|queue: usize| bench.counters[queue].busy_ns.value());
    assert!(are_as(&[first, second], &[1, 3]), "settled when they left");
    // The queues are added again in the other order, so that each gets the other's index.
    for queue in [1, 0] {
        let tally = Arc::clone(&bench.counters[queue]);
        bench.accounting.add_queue(&mut bench.costs[queue], &tally);
    }
    bench.round(&[0, 1], 400_000);
    assert!(are_as(&bench.total(), &[1, 3]));
}

#[test]
fn a_queue_that_left_in_the_middle_of_a_round_leaves_its_part_to_others() {
    let mut bench = Bench::new(2);
    bench.accounting.charge_ingress(&bench.costs[0], 32, 2048);
    bench.accounting.charge_egress(&bench.costs[1], 32, 2048);
    bench.accounting.remove_queue(&mut bench.costs[1]);
    let added = Arc::<QueueCounters>::default();
    let mut cost = QueueCost::default();
    bench.accounting.add_queue(&mut cost, &added);
    bench.accounting.update_egress_estimates(500);
    bench.accounting.end_round(1000);
    assert_eq!(bench.total(), [1000, 0]);
    assert_eq!(added.busy_ns.value(), 0);
}
