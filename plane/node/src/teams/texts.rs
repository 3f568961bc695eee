//! Texts of team events.

use suimon_contract::{EventKind, Name};
use suimon_quantity::Count;
use suimon_teaming::TeamEvent;
use suimon_teaming::lacp::{ChurnSide, PortInfo};

use super::lacp_side::PartnerNews;
use super::team_entry::TeamEntry;
use crate::PortKey;
use crate::events::Draft;

fn draft(kind: EventKind, team: &Name, text: impl Into<String>) -> Draft {
    Draft::new(kind, PortKey::Team(team.clone()), text)
}

/// Converts an event of the team policy.
pub(crate) fn team_event(entry: &TeamEntry, event: &TeamEvent) -> Draft {
    let name = |member| entry.name_of(member);
    let event_of = |kind, text: String| draft(kind, &entry.name, text);
    match *event {
        TeamEvent::Down { usable, min_links } => {
            let members = Count::new(usable, "member");
            let text = format!(
                "The team forwards no frame: it has {members} usable, and min_links is \
                 {min_links}. Check the links of the members."
            );
            event_of(EventKind::TeamDown, text).with("usable", usable).with("min_links", min_links)
        }
        TeamEvent::Up { usable, min_links } => {
            let members = Count::new(usable, "member");
            let text =
                format!("The team is up: it has {members} usable, and min_links is {min_links}.");
            event_of(EventKind::TeamUp, text).with("usable", usable).with("min_links", min_links)
        }
        TeamEvent::MemberFailed { member, fault } => {
            let found = entry.members.iter().find(|found| found.id() == member);
            let reason = found.map_or_else(String::new, |found| entry.fault_text(found, fault));
            let text = format!("Member {} of the team failed: {reason}.", name(member));
            let draft = event_of(EventKind::TeamMemberFailed, text);
            draft.with("member", name(member)).with("reason", reason)
        }
        TeamEvent::MemberUsable { member } => {
            let text = format!("Member {} of the team is usable.", name(member));
            event_of(EventKind::TeamMemberUsable, text).with("member", name(member))
        }
        TeamEvent::StandbyTookOver { standby, failed } => {
            let text = format!(
                "Standby member {} replaced the failed member {}.",
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

/// Returns the event that one end of a link has been out of sync for too long, or is in sync again
/// (IEEE 802.1AX churn detection).
pub(crate) fn churn(team: &Name, member: &str, side: ChurnSide, is_churning: bool) -> Draft {
    let (end, word) = match side {
        ChurnSide::Actor => ("This host", "actor"),
        ChurnSide::Partner => ("The LACP partner", "partner"),
    };
    let draft = if is_churning {
        let text = format!(
            "{end} has been out of sync by LACP on the link of {member} for 60 s. Check the LACP \
             configuration of that side."
        );
        draft(EventKind::LacpOutOfSync, team, text)
    } else {
        let text = format!("{end} is in sync by LACP on the link of {member} again.");
        draft(EventKind::LacpInSync, team, text)
    };
    draft.with("member", member).with("side", word)
}

/// Returns the event that a member's link is looped to this host, or that the loop has ended.
pub(crate) fn loopback(team: &Name, member: &str, port: Option<u16>) -> Draft {
    match port {
        Some(port) => {
            let text = format!(
                "The link of {member} is looped back to this host, to LACP port {port}; the \
                 member is not used. Check the cables."
            );
            draft(EventKind::LacpLooped, team, text).with("member", member).with("port", port)
        }
        None => {
            let text = format!("The link of {member} is not looped back to this host any more.");
            draft(EventKind::LacpLoopEnded, team, text).with("member", member)
        }
    }
}

/// Returns the event that a member's partner has changed: another system, or other settings of the
/// same one.
pub(crate) fn partner_changed(team: &Name, member: &str, news: &PartnerNews) -> Draft {
    let PartnerNews { from, to, changes, .. } = news;
    let text = if from.system == to.system {
        let partner = format!("The LACP partner {} on the link of {member}", to.system);
        let differences = differences(from, to);
        if differences.is_empty() {
            format!(
                "{partner} changed {changes} times and has its former key, port and priorities \
                 again."
            )
        } else {
            format!("{partner} changed its {}.", differences.join(", its "))
        }
    } else {
        format!(
            "The LACP partner on the link of {member} is {} (key {}); it was {} (key {}). Check \
             the cables and the configuration of the partner.",
            to.system, to.key, from.system, from.key
        )
    };
    let draft = draft(EventKind::LacpPartnerChanged, team, text).with("member", member);
    let draft = draft.with("from", from.system).with("to", to.system);
    draft.with("from_key", from.key).with("to_key", to.key).with("changes", changes)
}

/// Returns the settings in which two partners of one system differ, as text.
fn differences(from: &PortInfo, to: &PortInfo) -> Vec<String> {
    let values = [
        ("key", from.key, to.key),
        ("port", from.port, to.port),
        ("system priority", from.system_priority, to.system_priority),
        ("port priority", from.port_priority, to.port_priority),
    ];
    let changed = values.into_iter().filter(|(_, from, to)| from != to);
    changed.map(|(name, from, to)| format!("{name} from {from} to {to}")).collect()
}
