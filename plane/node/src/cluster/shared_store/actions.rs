//! Pending actions of the member of a store.

use std::collections::VecDeque;
use std::mem::discriminant;

use suimon_cluster_qos::{
    DurableState, LoadReport, MemberAction, MemberNotice, PolicyCap, TimedRateLimit,
};

/// Pending action of the member of a store.
pub(in crate::cluster) enum StoreAction {
    /// Set the limit of the store's disks, and this node's shares of policies that span nodes.
    ApplyLimits(TimedRateLimit, Vec<PolicyCap>),
    /// Make this state durable, for the next start of the daemon.
    SaveState(DurableState),
    /// Write the report for the store's leader.
    WriteReport(LoadReport),
    NotifyMember(MemberNotice),
}

pub(super) fn from_member_action(action: MemberAction) -> StoreAction {
    match action {
        MemberAction::Apply { store, policies } => StoreAction::ApplyLimits(store, policies),
        MemberAction::Persist { durable } => StoreAction::SaveState(durable),
        MemberAction::Send { report } => StoreAction::WriteReport(report),
        MemberAction::Notify { notice } => StoreAction::NotifyMember(notice),
    }
}

/// Removes pending actions that others supersede: only the newest state is made durable, then
/// applied, then reported, and of each kind of notice one is kept.
pub(super) fn remove_superseded(todo: &mut VecDeque<StoreAction>) {
    let (mut keep, mut apply, mut send) = (None, None, None);
    let mut notices: Vec<MemberNotice> = Vec::new();
    for action in todo.drain(..) {
        match action {
            // Earlier reports describe an earlier state. The member sends others.
            StoreAction::SaveState(_) => (keep, send) = (Some(action), None),
            StoreAction::ApplyLimits(..) => (apply, send) = (Some(action), None),
            StoreAction::WriteReport(_) => send = Some(action),
            StoreAction::NotifyMember(notice) => {
                notices.retain(|queued| discriminant(queued) != discriminant(&notice));
                notices.push(notice);
            }
        }
    }
    let notices = notices.into_iter().map(StoreAction::NotifyMember);
    todo.extend(keep.into_iter().chain(notices).chain(apply).chain(send));
}
