//! Changes of a store's limits that have not been applied yet.

use suimon_storage_qos::ConfigStep;

/// Appends a change to `pending`. A pending change that it replaces is removed, so that values
/// which change again and again while all workers are blocked do not accumulate.
pub fn add_pending_change(pending: &mut Vec<ConfigStep>, change: ConfigStep) {
    pending.retain(|earlier| !replaces(&change, earlier));
    pending.push(change);
}

/// Returns true if `earlier` has no effect once `later` is applied at any time after it.
fn replaces(later: &ConfigStep, earlier: &ConfigStep) -> bool {
    match (later, earlier) {
        (ConfigStep::SetCap(_), ConfigStep::SetCap(_))
        | (ConfigStep::SetCapacity(_), ConfigStep::SetCapacity(_))
        | (ConfigStep::SetMeasuredLatency(_), ConfigStep::SetMeasuredLatency(_)) => true,
        (ConfigStep::SetPolicyShare(policy, _), ConfigStep::SetPolicyShare(other, _)) => {
            policy == other
        }
        _ => false,
    }
}
