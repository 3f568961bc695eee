//! Numbers of NICs in the failover policy.

use std::collections::BTreeMap;

use suimon_contract::Name;
use suimon_quantity::PortId;

/// NICs by name and by number. No number is assigned twice, so a NIC that is created under the name
/// of a forgotten one has another number. The number of entries is bounded by
/// [`NicNumbers::retain`].
#[derive(Debug, Default)]
pub(super) struct NicNumbers {
    numbers: BTreeMap<Name, PortId>,
    names: BTreeMap<PortId, Name>,
    assigned: u32,
}

impl NicNumbers {
    /// Returns the number of a NIC, and assigns one if it has none.
    pub(super) fn assign_number(&mut self, name: &Name) -> PortId {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = PortId(self.assigned);
        self.assigned = self.assigned.wrapping_add(1);
        self.numbers.insert(name.clone(), number);
        self.names.insert(number, name.clone());
        number
    }

    /// Returns the name of a NIC; `None` if it was forgotten.
    pub(super) fn name(&self, number: PortId) -> Option<&Name> {
        self.names.get(&number)
    }

    /// Forgets the NICs for which `is_retained` returns false.
    pub(super) fn retain(&mut self, is_retained: impl Fn(&Name) -> bool) {
        self.numbers.retain(|name, _| is_retained(name));
        self.names.retain(|_, name| is_retained(name));
    }
}
