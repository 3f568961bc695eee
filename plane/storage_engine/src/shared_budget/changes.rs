//! Changes of a store's limits that have not been applied yet.

use suimon_storage_qos::Change;

/// Appends a change to `pending`. A pending change that it replaces is removed, so that values
/// which change again and again while all workers are blocked do not accumulate.
pub fn add_pending_change(pending: &mut Vec<Change>, change: Change) {
    pending.retain(|earlier| !replaces(&change, earlier));
    pending.push(change);
}

/// Returns true if `earlier` has no effect once `later` is applied at any time after it.
fn replaces(later: &Change, earlier: &Change) -> bool {
    match (later, earlier) {
        (Change::Cap(_), Change::Cap(_))
        | (Change::Capacity(_), Change::Capacity(_))
        | (Change::Latency(_), Change::Latency(_)) => true,
        (Change::Part(policy, _), Change::Part(other, _)) => policy == other,
        _ => false,
    }
}
