//! Who has which of many equal things: buckets of flows, or addresses of ports.

use std::collections::BTreeMap;

use crate::MemberSlot;
use crate::slots::{PerSlot, SlotSet};

/// Capacities of members, in any unit; those of active members are not 0.
pub(crate) type Weights = PerSlot<u32>;

/// Things, each on one member, in shares by capacity.
///
/// A thing stays where it is unless its member is lost or a move makes the most
/// loaded member less loaded than the receiver becomes. What results is the
/// allocation by highest averages (D'Hondt): no other has a lower greatest count per
/// capacity, and losing or adding one member moves only things that leave or go to
/// that member. Of n things on k members with capacities w and sum W, a member has at
/// least ⌊n·w/W⌋ and at most (n + k − 1)·w/W of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    homes: BTreeMap<u64, Option<MemberSlot>>,
}

/// Whether `a.0 / a.1` is above `b.0 / b.1`.
fn is_above(a: (u32, u32), b: (u32, u32)) -> bool {
    u64::from(a.0) * u64::from(b.1) > u64::from(b.0) * u64::from(a.1)
}

impl Shares {
    /// Makes these the things; those that were here stay where they are.
    pub(crate) fn set_things(&mut self, things: impl Iterator<Item = u64>) {
        let mut before = core::mem::take(&mut self.homes);
        self.homes = things.map(|thing| (thing, before.remove(&thing).flatten())).collect();
    }

    /// Gives every thing whose member is not active to one that is, then evens out
    /// by moves to `receivers`. Without active members all stays as it is, so that
    /// things find their way back to where they were.
    pub(crate) fn settle(&mut self, active: SlotSet, weights: &Weights, receivers: SlotSet) {
        if active.is_empty() {
            return;
        }
        let mut counts = PerSlot::<u32>::default();
        for slot in self.homes.values().flatten().filter(|slot| active.contains(**slot)) {
            *counts.at_mut(*slot) += 1;
        }
        for home in self.homes.values_mut() {
            if home.is_none_or(|slot| !active.contains(slot)) {
                *home = emptiest(active, &counts, weights);
                if let Some(slot) = *home {
                    *counts.at_mut(slot) += 1;
                }
            }
        }
        self.carry_out(&mut moves(active, weights, receivers, &mut counts));
    }

    /// Takes from each member the things with the highest numbers.
    fn carry_out(&mut self, moves: &mut PerSlot<Vec<MemberSlot>>) {
        for home in self.homes.values_mut().rev() {
            let Some(slot) = *home else { continue };
            // Who gives never receives, so that no thing is moved twice.
            if let Some(to) = moves.at_mut(slot).pop() {
                *home = Some(to);
            }
        }
    }

    pub(crate) fn home(&self, thing: u64) -> Option<MemberSlot> {
        self.homes.get(&thing).copied().flatten()
    }

    pub(crate) fn set_home(&mut self, thing: u64, slot: MemberSlot) {
        if let Some(home) = self.homes.get_mut(&thing) {
            *home = Some(slot);
        }
    }

    pub(crate) fn count(&self, slot: MemberSlot) -> u32 {
        let count = self.homes.values().filter(|home| **home == Some(slot)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// Where one more thing makes the lowest count per capacity; the first of equals.
fn emptiest(among: SlotSet, counts: &PerSlot<u32>, weights: &Weights) -> Option<MemberSlot> {
    let after = |slot: MemberSlot| (counts.at(slot) + 1, *weights.at(slot));
    among.iter().reduce(|best, slot| if is_above(after(best), after(slot)) { slot } else { best })
}

fn fullest(among: SlotSet, counts: &PerSlot<u32>, weights: &Weights) -> Option<MemberSlot> {
    let now = |slot: MemberSlot| (*counts.at(slot), *weights.at(slot));
    among.iter().reduce(|best, slot| if is_above(now(slot), now(best)) { slot } else { best })
}

/// For each member, where things of it go. Every move lowers the greatest count per
/// capacity among the two, so that there are at most as many as things.
fn moves(
    active: SlotSet,
    weights: &Weights,
    receivers: SlotSet,
    counts: &mut PerSlot<u32>,
) -> PerSlot<Vec<MemberSlot>> {
    let mut moves = PerSlot::<Vec<MemberSlot>>::default();
    let receivers: SlotSet = receivers.iter().filter(|slot| active.contains(*slot)).collect();
    while let (Some(from), Some(to)) =
        (fullest(active, counts, weights), emptiest(receivers, counts, weights))
    {
        let (now, after) =
            ((*counts.at(from), *weights.at(from)), (counts.at(to) + 1, *weights.at(to)));
        if !is_above(now, after) {
            break;
        }
        *counts.at_mut(from) -= 1;
        *counts.at_mut(to) += 1;
        moves.at_mut(from).push(to);
    }
    moves
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
