//! Events of the team policy.

use suimon_contract::EventKind;
use suimon_quantity::CountedNoun;
use suimon_teaming::{MemberFault, MemberId, TeamEvent};

use super::TeamEntry;
use crate::events::EventDraft;
use crate::teams::texts::team_event_draft;

impl TeamEntry {
    /// Converts an event of the team policy.
    pub(super) fn team_event(&self, event: &TeamEvent) -> EventDraft {
        let name = |member| self.name_of(member);
        let event_of = |kind, text: String| team_event_draft(kind, &self.name, text);
        match *event {
            TeamEvent::Down { usable, min_links } => {
                let members = CountedNoun::new(usable, "member");
                let text = format!(
                    "The team forwards no frame: it has {members} usable, and min_links is \
                     {min_links}. Check the links of the members."
                );
                let draft = event_of(EventKind::TeamDown, text).with("usable", usable);
                draft.with("min_links", min_links)
            }
            TeamEvent::Up { usable, min_links } => {
                let members = CountedNoun::new(usable, "member");
                let text = format!(
                    "The team is up: it has {members} usable, and min_links is {min_links}."
                );
                let draft = event_of(EventKind::TeamUp, text).with("usable", usable);
                draft.with("min_links", min_links)
            }
            TeamEvent::MemberFailed { member, fault } => self.member_failed(member, fault),
            TeamEvent::MemberUsable { member } => {
                let text = format!("Member {} of the team is usable.", name(member));
                event_of(EventKind::TeamMemberUsable, text).with("member", name(member))
            }
            TeamEvent::StandbyTookOver { standby, failed } => {
                let text = format!(
                    "Standby member {} replaced the failed member {}. Check the cable and switch \
                     port of the failed member.",
                    name(standby),
                    name(failed)
                );
                let draft = event_of(EventKind::TeamStandbyTookOver, text);
                draft.with("standby", name(standby)).with("failed", name(failed))
            }
            TeamEvent::StandbyReleased { standby } => {
                let text = format!("Standby member {} is idle again.", name(standby));
                event_of(EventKind::TeamStandbyReleased, text).with("standby", name(standby))
            }
            TeamEvent::PrimaryChanged { from, to } => {
                let text = match from {
                    Some(from) => format!(
                        "{} is the primary (receiving) member in place of {}.",
                        name(to),
                        name(from)
                    ),
                    None => format!("{} is the primary (receiving) member.", name(to)),
                };
                let draft = event_of(EventKind::TeamPrimaryChanged, text).with("to", name(to));
                match from {
                    Some(from) => draft.with("from", name(from)),
                    None => draft,
                }
            }
            TeamEvent::PrimaryRestored { from, to } => {
                let text = format!(
                    "The configured primary {} is the receiving member again in place of {}.",
                    name(to),
                    name(from)
                );
                let draft = event_of(EventKind::TeamPrimaryRestored, text);
                draft.with("to", name(to)).with("from", name(from))
            }
        }
    }

    fn member_failed(&self, member: MemberId, fault: MemberFault) -> EventDraft {
        let failed_member = self.members.iter().find(|failed_member| failed_member.id() == member);
        let reason = failed_member
            .map_or_else(String::new, |failed_member| self.fault_text(failed_member, fault));
        let name = self.name_of(member);
        let text = format!(
            "Member {name} of the team failed: {reason}. Check its cable, switch port and LACP."
        );
        team_event_draft(EventKind::TeamMemberFailed, &self.name, text)
            .with("member", name)
            .with("reason", reason)
    }
}
