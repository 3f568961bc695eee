//! Dedicated receive queues of NICs on an uplink's device.

use std::collections::BTreeMap;

use suimon_quantity::PortId;

/// Index of the receive queue for all other traffic: unknown and broadcast destinations, and NICs
/// without a dedicated queue.
pub const DEFAULT_QUEUE: u16 = 0;

/// Returns the dedicated receive queue by NIC, from the first `queues` of a device. A NIC is
/// missing if none is left. [`DEFAULT_QUEUE`] is never dedicated.
///
/// A NIC keeps its queue of `previous` if that exists. The others get the lowest free queue in the
/// order of `nics`.
pub fn dedicated_queues(
    queues: u16,
    nics: &[PortId],
    previous: &BTreeMap<PortId, u16>,
) -> BTreeMap<PortId, u16> {
    let mut assigned = BTreeMap::new();
    let mut free = vec![true; usize::from(queues)];
    let mut claim = |queue: u16| {
        let entry = free.get_mut(usize::from(queue)).filter(|_| queue != DEFAULT_QUEUE);
        entry.is_some_and(std::mem::take)
    };
    for nic in nics {
        if let Some(queue) = previous.get(nic).copied().filter(|queue| claim(*queue)) {
            assigned.insert(*nic, queue);
        }
    }
    let mut available = (0..queues).filter(|queue| claim(*queue));
    for nic in nics {
        if assigned.contains_key(nic) {
            continue;
        }
        let Some(queue) = available.next() else { break };
        assigned.insert(*nic, queue);
    }
    assigned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ports(numbers: &[u32]) -> Vec<PortId> {
        numbers.iter().copied().map(PortId).collect()
    }

    fn previous_queues(pairs: &[(u32, u16)]) -> BTreeMap<PortId, u16> {
        pairs.iter().map(|(port, queue)| (PortId(*port), *queue)).collect()
    }

    #[test]
    fn the_default_queue_is_unassigned_and_the_first_ports_get_queues_first() {
        let none = BTreeMap::new();
        for queues in [0, 1] {
            assert_eq!(dedicated_queues(queues, &ports(&[7, 8]), &none), none);
        }
        assert_eq!(
            dedicated_queues(3, &ports(&[9, 7, 8]), &none),
            previous_queues(&[(9, 1), (7, 2)])
        );
    }

    #[test]
    fn assigned_queues_are_kept_and_new_ports_get_free_ones() {
        let before = previous_queues(&[(7, 2), (8, 1), (9, 3)]);
        assert_eq!(
            dedicated_queues(4, &ports(&[5, 7, 9]), &before),
            previous_queues(&[(7, 2), (9, 3), (5, 1)])
        );
        // The device now has fewer queues.
        assert_eq!(
            dedicated_queues(3, &ports(&[7, 8, 9]), &before),
            previous_queues(&[(7, 2), (8, 1)])
        );
        // Previous queues that no device would have.
        let odd = previous_queues(&[(7, 0), (8, 1), (9, 1)]);
        assert_eq!(
            dedicated_queues(3, &ports(&[7, 8, 9]), &odd),
            previous_queues(&[(8, 1), (7, 2)])
        );
    }

    proptest! {
        #[test]
        fn queues_have_one_owner_and_none_stays_free_while_a_port_needs_one(
            queues in 0_u16..9,
            nics in proptest::collection::btree_set(0_u32..12, 0..12),
            before in proptest::collection::btree_map(0_u32..12, 0_u16..9, 0..12),
        ) {
            let nics: Vec<PortId> = nics.into_iter().map(PortId).collect();
            let before = before.into_iter().map(|(port, queue)| (PortId(port), queue)).collect();
            let assigned = dedicated_queues(queues, &nics, &before);
            let mut queue_numbers: Vec<u16> = assigned.values().copied().collect();
            queue_numbers.sort_unstable();
            queue_numbers.dedup();
            prop_assert_eq!(queue_numbers.len(), assigned.len());
            prop_assert!(queue_numbers.iter().all(|queue| (1..queues).contains(queue)));
            prop_assert_eq!(assigned.len(), nics.len().min(usize::from(queues.saturating_sub(1))));
            // The assignment is stable when repeated.
            prop_assert_eq!(dedicated_queues(queues, &nics, &assigned), assigned);
        }
    }
}
