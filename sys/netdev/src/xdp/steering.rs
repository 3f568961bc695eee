//! Steering of the frames of NICs to receive queues by flow rules in the device's table.
//!
//! The switch forwards by the contents of a frame, independent of its receive queue. A late, wrong
//! or missing rule therefore affects only the queue on which a NIC's frames arrive.
//!
//! Life cycle: [`Steering::new`] removes the rules of an earlier process. Every rule of the form
//! created here belongs to the switch, if the device has its program. [`Steering::set`] applies the
//! required rules. Dropping it restores the device's table.

use std::collections::BTreeSet;

use suimon_netif::flow_rules::FlowRule;
use suimon_ports::{SteeringRule, SteeringState};

use super::flow_table::{FlowError, FlowTable};

/// Flow rules of one device; see the module's documentation.
pub(super) struct Steering<T: FlowTable> {
    table: T,
    /// Number of receive queues of the device.
    queues: u16,
    configured: Vec<SteeringRule>,
    installed: Vec<InstalledRule>,
    /// Queues to which other frames are restricted; the driver's default if empty.
    spread_over: Vec<u16>,
    is_exclusive: bool,
    refusal: Option<FlowError>,
}

/// Rule present in the device's table.
struct InstalledRule {
    location: u32,
    rule: FlowRule,
    /// Required rule for which it was inserted, which may also match a VLAN that the inserted rule
    /// ignores.
    configured: SteeringRule,
}

impl<T: FlowTable> Steering<T> {
    pub(super) fn new(mut table: T, queues: u16) -> Self {
        let left = table.rules().unwrap_or_default();
        for (location, rule) in &left {
            match table.remove(*location) {
                Ok(()) => tracing::info!(?rule, "removed a flow rule of an earlier daemon"),
                Err(error) => tracing::warn!(
                    ?rule,
                    %error,
                    "a flow rule of an earlier daemon remains"
                ),
            }
        }
        if !left.is_empty() {
            // The earlier process may have restricted other frames to some queues.
            let _ = table.spread(&[]);
        }
        let (wanted, held) = (Vec::new(), Vec::new());
        let (spread_over, is_exclusive) = (Vec::new(), false);
        Self {
            table,
            queues,
            configured: wanted,
            installed: held,
            spread_over,
            is_exclusive,
            refusal: None,
        }
    }

    /// Applies these rules and no others, as far as the device accepts them. A rejected rule is
    /// retried when the required rules change.
    pub(super) fn set(&mut self, wanted: &[SteeringRule]) {
        if wanted != self.configured {
            self.configured = wanted.to_vec();
            self.apply();
        }
    }

    /// Returns the rules in effect, exclusivity, and the first rejection.
    pub(super) fn state(&self) -> SteeringState {
        let in_effect =
            |held: &InstalledRule| SteeringRule { vlan: held.rule.vlan, ..held.configured };
        let mut rules: Vec<SteeringRule> = self.installed.iter().map(in_effect).collect();
        rules.sort_by_key(|rule| rule.queue);
        let refusal = self.refusal.map(|error| error.to_string());
        SteeringState { rules, is_exclusive: self.is_exclusive, refusal }
    }

    fn apply(&mut self) {
        self.refusal = None;
        self.remove_unwanted();
        let wanted = self.configured.iter().copied();
        let missing: Vec<SteeringRule> = wanted
            .filter(|rule| rule.queue < self.queues)
            .filter(|rule| !self.installed.iter().any(|held| held.configured == *rule))
            .collect();
        for rule in missing {
            let Err(error) = self.add(rule) else { continue };
            self.refusal.get_or_insert(error);
            if matches!(error, FlowError::Unsupported(_) | FlowError::Full) {
                break;
            }
        }
        self.restrict_other_frames();
    }

    /// Removes rules no longer required. A failed removal is retried with the next change.
    fn remove_unwanted(&mut self) {
        let Self { table, configured: wanted, installed: held, .. } = self;
        held.retain(|held| {
            if wanted.contains(&held.configured) {
                return true;
            }
            let removed = table.remove(held.location);
            if let Err(error) = removed {
                tracing::warn!(rule = ?held.rule, %error, "cannot remove a flow rule");
            }
            removed.is_err()
        });
    }

    fn add(&mut self, wanted: SteeringRule) -> Result<(), FlowError> {
        let SteeringRule { mac, vlan, queue, .. } = wanted;
        let rule = FlowRule { mac, vlan, queue };
        let any_vlan = FlowRule { vlan: None, ..rule };
        let mut inserted = self.table.insert(&rule).map(|location| (location, rule));
        let refuses = matches!(inserted, Err(FlowError::Unsupported(_) | FlowError::Form(_)));
        if refuses && vlan.is_some() {
            if self.installed.iter().any(|held| held.rule.mac == mac) {
                return Err(FlowError::Ambiguous);
            }
            inserted = self.table.insert(&any_vlan).map(|location| (location, any_vlan));
        }
        let (location, rule) = inserted?;
        self.installed.push(InstalledRule { location, rule, configured: wanted });
        Ok(())
    }

    fn restrict_other_frames(&mut self) {
        let taken: BTreeSet<u16> = self.installed.iter().map(|held| held.rule.queue).collect();
        let others: Vec<u16> = if taken.is_empty() {
            Vec::new()
        } else {
            (0..self.queues).filter(|queue| !taken.contains(queue)).collect()
        };
        if others != self.spread_over {
            match self.table.spread(&others) {
                Ok(()) => self.spread_over.clone_from(&others),
                Err(error) => {
                    tracing::info!(%error, "other frames also arrive on the queues of flow rules");
                }
            }
        }
        self.is_exclusive = !others.is_empty() && others == self.spread_over;
    }
}

impl<T: FlowTable> Drop for Steering<T> {
    fn drop(&mut self) {
        self.configured.clear();
        self.apply();
    }
}

#[cfg(test)]
#[path = "steering_tests.rs"]
mod tests;
