//! Roles of a team's members (usable, active, primary, standby in use), and the events caused by
//! their changes.

use std::collections::BTreeSet;

use crate::member_table::{MemberEntry, MemberTable};
use crate::{MemberFault, MemberId, TeamEvent, TeamMode, TeamSpec};

/// Roles of a team's members, derived from configuration and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemberRoles {
    /// Members that can carry frames, including the standby.
    pub(crate) usable: BTreeSet<MemberId>,
    /// Members that carry frames if the team is up.
    pub(crate) active: BTreeSet<MemberId>,
    /// Member that receives alone in modes with a single receiver, and to which unknown ports are
    /// assigned. `None` without active members.
    pub(crate) primary: Option<MemberId>,
    /// Failed member that the standby replaces; `None` if the standby is not in use.
    pub(crate) standby_for: Option<MemberId>,
    pub(crate) is_up: bool,
}

impl MemberRoles {
    /// Derives the roles from configuration and links; `before` is the previous primary.
    pub(crate) fn derive(spec: &TeamSpec, roster: &MemberTable, before: Option<MemberId>) -> Self {
        let usable: BTreeSet<MemberId> = roster
            .entries()
            .filter(|(_, entry)| member_fault(spec.mode, entry).is_none())
            .map(|(_, entry)| entry.id)
            .collect();
        let is_standby = |member: MemberId| spec.standby == Some(member);
        let members = spec.members.iter().map(|member| member.id);
        let failed = members.clone().find(|id| !is_standby(*id) && !usable.contains(id));
        let standby = spec.standby.filter(|standby| usable.contains(standby));
        let standby_for = standby.and(failed);
        let active: BTreeSet<MemberId> =
            usable.iter().copied().filter(|id| !is_standby(*id) || standby_for.is_some()).collect();
        let mut in_order = members.filter(|id| active.contains(id));
        let first = in_order.clone().find(|id| !is_standby(*id)).or_else(|| in_order.next());
        let if_active = |member: Option<MemberId>| member.filter(|id| active.contains(id));
        let primary = if_active(spec.primary).or(if_active(before)).or(first);
        let is_up = active.len() >= usize::try_from(spec.min_links.max(1)).unwrap_or(usize::MAX);
        Self { usable, active, primary, standby_for, is_up }
    }

    /// Returns the events for the differences between the roles `before` and these. `spec` and
    /// `roster` are the current ones.
    pub(crate) fn events_since(
        &self,
        before: &Self,
        spec: &TeamSpec,
        roster: &MemberTable,
    ) -> Vec<TeamEvent> {
        let mut events = Vec::new();
        for (_, entry) in roster.entries() {
            let member = entry.id;
            match (before.usable.contains(&member), member_fault(spec.mode, entry)) {
                (true, Some(fault)) => events.push(TeamEvent::MemberFailed { member, fault }),
                (false, None) => events.push(TeamEvent::MemberUsable { member }),
                _ => {}
            }
        }
        if let Some(standby) = spec.standby {
            match (before.standby_for, self.standby_for) {
                (None, Some(failed)) => events.push(TeamEvent::StandbyTookOver { standby, failed }),
                (Some(_), None) => events.push(TeamEvent::StandbyReleased { standby }),
                _ => {}
            }
        }
        if spec.mode == TeamMode::SwitchIndependent && before.primary != self.primary {
            events.extend(self.primary.map(|to| match before.primary {
                Some(from) if spec.primary == Some(to) => TeamEvent::PrimaryRestored { from, to },
                from => TeamEvent::PrimaryChanged { from, to },
            }));
        }
        let usable = u32::try_from(self.active.len()).unwrap_or(u32::MAX);
        let min_links = spec.min_links;
        match (before.is_up, self.is_up) {
            (true, false) => events.push(TeamEvent::Down { usable, min_links }),
            (false, true) => events.push(TeamEvent::Up { usable, min_links }),
            _ => {}
        }
        events
    }
}

/// Returns the reason for which frames cannot leave by this member; `None` if they can.
pub(crate) fn member_fault(mode: TeamMode, entry: &MemberEntry) -> Option<MemberFault> {
    if !entry.link.up {
        Some(MemberFault::LinkDown)
    } else if mode == TeamMode::Lacp && !entry.link.distributing {
        Some(MemberFault::NotDistributing)
    } else {
        None
    }
}
