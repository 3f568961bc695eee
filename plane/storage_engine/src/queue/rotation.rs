//! Round-robin order in which queues are polled.

/// Maximum number of queues polled per iteration. Polling a thousand queues in one iteration would
/// cost more than the requests found. With `n` polled queues, each is polled at least once in `2 *
/// (n / QUEUES_PER_ITERATION_MAX + 1)` iterations.
pub(crate) const QUEUES_PER_ITERATION_MAX: usize = 64;

/// Polled queues in round-robin order.
///
/// The order runs from the end of the list to its start. A queue that replaces a removed one was
/// polled before it, and is skipped at most once.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    queues: Vec<usize>,
    /// Position in `queues` of the last poll. The queues before it are polled next.
    position: usize,
    /// Number of consecutive polls that returned no requests.
    fruitless: usize,
}

impl Rotation {
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns the number of queues to poll in one iteration.
    pub(crate) fn queues_per_iteration(&self) -> usize {
        self.queues.len().min(QUEUES_PER_ITERATION_MAX)
    }

    /// Adds a queue that was not polled before.
    pub(crate) fn add(&mut self, queue: usize) {
        self.queues.push(queue);
        self.fruitless = 0;
    }

    /// Removes the queues for which `is_polled` returns false.
    pub(crate) fn retain(&mut self, mut is_polled: impl FnMut(usize) -> bool) {
        self.queues.retain(|queue| is_polled(*queue));
    }

    /// Returns the number of the next queue to poll; `None` if there is none.
    pub(crate) fn next(&mut self) -> Option<usize> {
        let len = self.queues.len();
        let end = if self.position == 0 { len } else { self.position.min(len) };
        self.position = end.checked_sub(1)?;
        self.queues.get(self.position).copied()
    }

    /// Records whether the last poll returned requests.
    pub(crate) fn record_poll(&mut self, has_brought: bool) {
        self.fruitless = if has_brought { 0 } else { self.fruitless.saturating_add(1) };
    }

    /// Removes the queue that was polled last, because the worker waits for its descriptor now.
    pub(crate) fn remove_waiting(&mut self, queue: usize) {
        // The queue may have been closed meanwhile.
        if self.queues.get(self.position) == Some(&queue) {
            self.queues.swap_remove(self.position);
        }
    }

    /// Returns true if a queue may have requests; false if the last poll of every queue returned
    /// none.
    pub(crate) fn may_have_more(&self) -> bool {
        self.fruitless < self.queues.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::random_numbers::RandomNumbers;

    /// For any sequence of additions and removals, the interval between two polls of a queue is
    /// bounded.
    #[test]
    fn each_queue_is_polled_within_the_bound() {
        for seed in 1..200 {
            let mut random = RandomNumbers(seed);
            let mut rotation = Rotation::default();
            // Iteration of the last poll of each queue.
            let mut polled = BTreeMap::new();
            let (count, removal_share) = (1 + random.below(400) as usize, random.below(4));
            for round in 0..200 {
                while polled.len() < count {
                    let number = random.below(1000) as usize;
                    if polled.insert(number, round).is_none() {
                        rotation.add(number);
                    }
                }
                for _ in 0..rotation.queues_per_iteration() {
                    let Some(queue) = rotation.next() else { break };
                    polled.insert(queue, round);
                    if random.below(8) < removal_share {
                        rotation.remove_waiting(queue);
                        polled.remove(&queue);
                    }
                    if random.below(50) == 0 {
                        let closed = polled.keys().next().copied();
                        rotation.retain(|queue| Some(queue) != closed);
                        closed.and_then(|closed| polled.remove(&closed));
                    }
                }
                assert_eq!(rotation.len(), polled.len());
                let oldest = polled.values().min().copied().unwrap_or(round);
                let bound = 2 * (count / QUEUES_PER_ITERATION_MAX + 1);
                assert!(round - oldest <= bound, "seed {seed}: {} iterations", round - oldest);
            }
        }
    }

    #[test]
    fn no_more_requests_are_expected_after_each_queue_was_empty() {
        let mut rotation = Rotation::default();
        assert_eq!((rotation.next(), rotation.may_have_more()), (None, false));
        (0..100).for_each(|queue| rotation.add(queue));
        for _ in 0..100 {
            assert!(rotation.may_have_more());
            rotation.next().unwrap();
            rotation.record_poll(false);
        }
        assert!(!rotation.may_have_more());
        rotation.next().unwrap();
        rotation.record_poll(true);
        assert!(rotation.may_have_more());
        rotation.add(100);
        assert_eq!(rotation.next(), Some(98), "one that comes does not go before others");
    }
}
