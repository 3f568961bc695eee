//! Assignment of items (flow buckets or port addresses) to members, in proportion to their
//! capacities.

use std::collections::BTreeMap;

use crate::MemberSlot;
use crate::slots::{PerSlot, SlotSet};

/// Capacities of members in any common unit; not 0 for active members.
pub(crate) type Weights = PerSlot<u32>;

/// Assignment of items of equal size to members, in proportion to the members' capacities.
///
/// An item keeps its member unless the member is lost or a move makes the most loaded member less
/// loaded than the receiver becomes. The result is the highest averages allocation (D'Hondt): no
/// other has a lower maximum count per capacity, and removing or adding one member moves only items
/// that leave or join that member. Of n items on k members with capacities w and sum W, a member
/// has at least ⌊n·w/W⌋ and at most (n + k − 1)·w/W.
#[derive(Clone, Debug, Default)]
pub(crate) struct ItemAssignment {
    assignments: BTreeMap<u64, Option<MemberSlot>>,
}

/// Returns true if `a.0 / a.1` is greater than `b.0 / b.1`.
fn is_above(a: (u32, u32), b: (u32, u32)) -> bool {
    u64::from(a.0) * u64::from(b.1) > u64::from(b.0) * u64::from(a.1)
}

impl ItemAssignment {
    /// Replaces the set of items. Existing items keep their members, new ones have none until
    /// [`ItemAssignment::rebalance`].
    pub(crate) fn set_items(&mut self, items: impl Iterator<Item = u64>) {
        let mut before = core::mem::take(&mut self.assignments);
        self.assignments = items.map(|item| (item, before.remove(&item).flatten())).collect();
    }

    /// Assigns every item whose member is inactive to an active one, then balances the counts by
    /// moves to `receivers`. Without active members no item is moved, so that items keep their
    /// previous members.
    pub(crate) fn rebalance(&mut self, active: SlotSet, weights: &Weights, receivers: SlotSet) {
        if active.is_empty() {
            return;
        }
        let mut counts = PerSlot::<u32>::default();
        for slot in self.assignments.values().flatten().filter(|slot| active.contains(**slot)) {
            *counts.at_mut(*slot) += 1;
        }
        for assignment in self.assignments.values_mut() {
            if assignment.is_none_or(|slot| !active.contains(slot)) {
                *assignment = emptiest(active, &counts, weights);
                if let Some(slot) = *assignment {
                    *counts.at_mut(slot) += 1;
                }
            }
        }
        self.apply(&mut moves(active, weights, receivers, &mut counts));
    }

    /// Carries out the moves, given by slot of the losing member: each loses its items with the
    /// highest numbers.
    fn apply(&mut self, moves: &mut PerSlot<Vec<MemberSlot>>) {
        for assignment in self.assignments.values_mut().rev() {
            let Some(slot) = *assignment else { continue };
            // A member that loses items never receives any, so no item is moved twice.
            if let Some(to) = moves.at_mut(slot).pop() {
                *assignment = Some(to);
            }
        }
    }

    pub(crate) fn assigned_member(&self, item: u64) -> Option<MemberSlot> {
        self.assignments.get(&item).copied().flatten()
    }

    pub(crate) fn assign(&mut self, item: u64, slot: MemberSlot) {
        if let Some(assignment) = self.assignments.get_mut(&item) {
            *assignment = Some(slot);
        }
    }

    pub(crate) fn count(&self, slot: MemberSlot) -> u32 {
        let count =
            self.assignments.values().filter(|assignment| **assignment == Some(slot)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// Returns the member whose count per capacity would be lowest with one more item, the first among
/// equals; `None` if `among` is empty.
fn emptiest(among: SlotSet, counts: &PerSlot<u32>, weights: &Weights) -> Option<MemberSlot> {
    let after = |slot: MemberSlot| (counts.at(slot) + 1, *weights.at(slot));
    among.iter().reduce(|best, slot| if is_above(after(best), after(slot)) { slot } else { best })
}

fn fullest(among: SlotSet, counts: &PerSlot<u32>, weights: &Weights) -> Option<MemberSlot> {
    let now = |slot: MemberSlot| (*counts.at(slot), *weights.at(slot));
    among.iter().reduce(|best, slot| if is_above(now(slot), now(best)) { slot } else { best })
}

/// Returns the moves that balance the counts: for each member the receivers of its items. Updates
/// `counts`. Every move lowers the maximum count per capacity of the two members, so there are at
/// most as many moves as items.
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
#[path = "item_assignment_tests.rs"]
mod tests;
