//! Which queues are polled, and whose turn it is.

/// Queues that are looked at in a turn, at most. A turn that looked at all of a thousand
/// would cost more than what it finds. While `n` are polled each of them is looked at at
/// least once in `2 * (n / QUEUES_PER_TURN + 1)` turns.
pub(crate) const QUEUES_PER_TURN: usize = 64;

/// Queues that are polled, by their numbers, one after another.
///
/// The turn goes down the list. So what takes the place of a queue that rests is one that
/// was looked at before it, and is passed over once at most.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    queues: Vec<usize>,
    /// Where it was looked last: all before it are to come.
    at: usize,
    /// How many were looked at in a row that brought nothing.
    fruitless: usize,
}

impl Rotation {
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// How many are looked at in a turn.
    pub(crate) fn per_turn(&self) -> usize {
        self.queues.len().min(QUEUES_PER_TURN)
    }

    /// A queue is polled from now on, and was not before.
    pub(crate) fn add(&mut self, queue: usize) {
        self.queues.push(queue);
        self.fruitless = 0;
    }

    /// Only these are polled any more.
    pub(crate) fn retain(&mut self, mut is_polled: impl FnMut(usize) -> bool) {
        self.queues.retain(|queue| is_polled(*queue));
    }

    /// Whose turn it is.
    pub(crate) fn next(&mut self) -> Option<usize> {
        let all = self.queues.len();
        let end = if self.at == 0 { all } else { self.at.min(all) };
        self.at = end.checked_sub(1)?;
        self.queues.get(self.at).copied()
    }

    /// Whether the queue whose turn it was brought something.
    pub(crate) fn note(&mut self, has_brought: bool) {
        self.fruitless = if has_brought { 0 } else { self.fruitless.saturating_add(1) };
    }

    /// The queue whose turn it was is not polled any more.
    pub(crate) fn rest(&mut self, queue: usize) {
        // It may have been closed meanwhile.
        if self.queues.get(self.at) == Some(&queue) {
            self.queues.swap_remove(self.at);
        }
    }

    /// Whether something may be in a queue, as far as it was looked: not if each has had its
    /// turn and brought nothing.
    pub(crate) fn may_have_more(&self) -> bool {
        self.fruitless < self.queues.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fakes::Dice;

    /// Whatever comes, rests and is closed, nobody waits for longer than it says.
    #[test]
    fn each_has_its_turn_in_time() {
        for seed in 1..200 {
            let mut dice = Dice(seed);
            let mut rotation = Rotation::default();
            // When each that is polled was looked at last.
            let mut polled = BTreeMap::new();
            let (count, rests) = (1 + dice.below(400) as usize, dice.below(4));
            for turn in 0..200 {
                while polled.len() < count {
                    let number = dice.below(1000) as usize;
                    if polled.insert(number, turn).is_none() {
                        rotation.add(number);
                    }
                }
                for _ in 0..rotation.per_turn() {
                    let Some(queue) = rotation.next() else { break };
                    polled.insert(queue, turn);
                    if dice.below(8) < rests {
                        rotation.rest(queue);
                        polled.remove(&queue);
                    }
                    if dice.below(50) == 0 {
                        let closed = polled.keys().next().copied();
                        rotation.retain(|queue| Some(queue) != closed);
                        closed.and_then(|closed| polled.remove(&closed));
                    }
                }
                assert_eq!(rotation.len(), polled.len());
                let oldest = polled.values().min().copied().unwrap_or(turn);
                let bound = 2 * (count / QUEUES_PER_TURN + 1);
                assert!(turn - oldest <= bound, "seed {seed}: {} turns", turn - oldest);
            }
        }
    }

    #[test]
    fn it_is_over_when_each_has_brought_nothing() {
        let mut rotation = Rotation::default();
        assert_eq!((rotation.next(), rotation.may_have_more()), (None, false));
        (0..100).for_each(|queue| rotation.add(queue));
        for _ in 0..100 {
            assert!(rotation.may_have_more());
            rotation.next().unwrap();
            rotation.note(false);
        }
        assert!(!rotation.may_have_more());
        rotation.next().unwrap();
        rotation.note(true);
        assert!(rotation.may_have_more());
        rotation.add(100);
        assert_eq!(rotation.next(), Some(98), "one that comes does not go before others");
    }
}
