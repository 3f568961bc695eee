//! Steering of the frames of NICs to receive queues of an uplink, by flow rules in its device's
//! table.
//!
//! The switch forwards by the contents of a frame, independent of its receive queue. A late, wrong
//! or missing rule therefore affects only the queue on which a NIC's frames arrive.
//!
//! Life cycle: [`Steering::new`] removes the rules of an earlier process: if the device has the
//! switch's program, every rule of the form created here belongs to the switch.
//! [`Steering::set_rules`] applies the required rules. Dropping it restores the device's table.

use std::collections::BTreeSet;

use suimon_netif::flow_rules::FlowRule;
use suimon_ports::{SteeringRule, SteeringState};

use super::flow_table::{FlowError, FlowTable};

/// Flow rules of one device; see the module documentation.
pub(super) struct Steering<T: FlowTable> {
    table: T,
    /// Number of receive queues of the device.
    queues: u16,
    configured: Vec<SteeringRule>,
    installed: Vec<InstalledRule>,
    /// Queues over which frames without a rule are distributed; empty for the driver's default.
    other_frame_queues: Vec<u16>,
    is_exclusive: bool,
    refusal: Option<FlowError>,
}

/// Rule that was inserted into the device's table.
struct InstalledRule {
    location: u32,
    rule: FlowRule,
    /// Required rule that led to it. It may have a VLAN that the inserted rule ignores.
    configured: SteeringRule,
}

impl<T: FlowTable> Steering<T> {
    pub(super) fn new(mut table: T, queues: u16) -> Self {
        let stale_rules = table.rules().unwrap_or_default();
        for (location, rule) in &stale_rules {
            match table.remove(*location) {
                Ok(()) => tracing::info!(?rule, "removed a flow rule of an earlier daemon"),
                Err(error) => tracing::warn!(
                    ?rule,
                    %error,
                    "a flow rule of an earlier daemon remains"
                ),
            }
        }
        if !stale_rules.is_empty() {
            // The earlier process may have restricted other frames to some queues.
            let _ = table.distribute_unmatched(&[]);
        }
        let (configured, installed) = (Vec::new(), Vec::new());
        let (other_frame_queues, is_exclusive) = (Vec::new(), false);
        Self {
            table,
            queues,
            configured,
            installed,
            other_frame_queues,
            is_exclusive,
            refusal: None,
        }
    }

    /// Applies the required rules and no others, as far as the device accepts them. A rejected rule
    /// is retried when the required rules change.
    pub(super) fn set_rules(&mut self, rules: &[SteeringRule]) {
        if rules != self.configured {
            self.configured = rules.to_vec();
            self.apply();
        }
    }

    /// Returns the rules in effect, whether other frames are kept from their queues, and the first
    /// rejection.
    pub(super) fn state(&self) -> SteeringState {
        let in_effect = |installed: &InstalledRule| SteeringRule {
            vlan: installed.rule.vlan,
            ..installed.configured
        };
        let mut rules: Vec<SteeringRule> = self.installed.iter().map(in_effect).collect();
        rules.sort_by_key(|rule| rule.queue);
        let refusal = self.refusal.map(|error| error.to_string());
        SteeringState { rules, is_exclusive: self.is_exclusive, refusal }
    }

    fn apply(&mut self) {
        self.refusal = None;
        self.remove_unwanted();
        let configured = self.configured.iter().copied();
        let missing: Vec<SteeringRule> = configured
            .filter(|rule| rule.queue < self.queues)
            .filter(|rule| !self.installed.iter().any(|installed| installed.configured == *rule))
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

    /// Removes inserted rules that are not required any more. A failed removal is retried at the
    /// next change.
    fn remove_unwanted(&mut self) {
        let Self { table, configured, installed, .. } = self;
        installed.retain(|installed_rule| {
            if configured.contains(&installed_rule.configured) {
                return true;
            }
            let removed = table.remove(installed_rule.location);
            if let Err(error) = removed {
                tracing::warn!(rule = ?installed_rule.rule, %error, "cannot remove a flow rule");
            }
            removed.is_err()
        });
    }

    fn add(&mut self, configured: SteeringRule) -> Result<(), FlowError> {
        let SteeringRule { mac, vlan, queue, .. } = configured;
        let rule = FlowRule { mac, vlan, queue };
        let any_vlan = FlowRule { vlan: None, ..rule };
        let mut inserted = self.table.insert(&rule).map(|location| (location, rule));
        let refuses =
            matches!(inserted, Err(FlowError::Unsupported(_) | FlowError::UnsupportedForm(_)));
        if refuses && vlan.is_some() {
            if self.installed.iter().any(|installed| installed.rule.mac == mac) {
                return Err(FlowError::Ambiguous);
            }
            inserted = self.table.insert(&any_vlan).map(|location| (location, any_vlan));
        }
        let (location, rule) = inserted?;
        self.installed.push(InstalledRule { location, rule, configured });
        Ok(())
    }

    fn restrict_other_frames(&mut self) {
        let used: BTreeSet<u16> =
            self.installed.iter().map(|installed| installed.rule.queue).collect();
        let other_queues: Vec<u16> = if used.is_empty() {
            Vec::new()
        } else {
            (0..self.queues).filter(|queue| !used.contains(queue)).collect()
        };
        if other_queues != self.other_frame_queues {
            match self.table.distribute_unmatched(&other_queues) {
                Ok(()) => self.other_frame_queues.clone_from(&other_queues),
                Err(error) => {
                    tracing::info!(%error, "other frames also arrive on the queues of flow rules");
                }
            }
        }
        self.is_exclusive = !other_queues.is_empty() && other_queues == self.other_frame_queues;
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
