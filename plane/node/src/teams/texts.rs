//! Texts of team events.

use suimon_contract::{EventKind, Name};
use suimon_teaming::lacp::{ChurnSide, PortInfo};

use super::team_lacp::PartnerChange;
use crate::PortKey;
use crate::events::EventDraft;

pub(super) fn team_event_draft(
    kind: EventKind,
    team: &Name,
    text: impl Into<String>,
) -> EventDraft {
    EventDraft::new(kind, PortKey::Team(team.clone()), text)
}

/// Returns the event that one end of a link has been out of sync for too long, or is in sync again
/// (IEEE 802.1AX churn detection).
pub(crate) fn churn_event(
    team: &Name,
    member: &str,
    side: ChurnSide,
    is_churning: bool,
) -> EventDraft {
    let (end, side_name) = match side {
        ChurnSide::Actor => ("This host", "actor"),
        ChurnSide::Partner => ("The LACP partner", "partner"),
    };
    let draft = if is_churning {
        let text = format!(
            "{end} has been out of sync by LACP on the link of {member} for 60 s. Check the LACP \
             configuration of that side."
        );
        team_event_draft(EventKind::LacpOutOfSync, team, text)
    } else {
        let text = format!("{end} is in sync by LACP on the link of {member} again.");
        team_event_draft(EventKind::LacpInSync, team, text)
    };
    draft.with("member", member).with("side", side_name)
}

/// Returns the event that a member's link is looped to this host, or that the loop has ended.
pub(crate) fn loopback_event(team: &Name, member: &str, port: Option<u16>) -> EventDraft {
    match port {
        Some(port) => {
            let text = format!(
                "The link of {member} is looped back to this host, to LACP port {port}; the \
                 member is not used. Check the cables."
            );
            team_event_draft(EventKind::LacpLooped, team, text)
                .with("member", member)
                .with("port", port)
        }
        None => {
            let text = format!(
                "The loop on the link of {member} has ended; the member can be used again."
            );
            team_event_draft(EventKind::LacpLoopEnded, team, text).with("member", member)
        }
    }
}

/// Returns the event that a member's partner has changed: another system, or other settings of the
/// same one.
pub(crate) fn partner_changed_event(
    team: &Name,
    member: &str,
    change: &PartnerChange,
) -> EventDraft {
    let PartnerChange { from, to, change_count: changes, .. } = change;
    let text = if from.system == to.system {
        let partner = format!("The LACP partner {} on the link of {member}", to.system);
        let differences = differences(from, to);
        if differences.is_empty() {
            format!(
                "{partner} changed {changes} times and has its former key, port and priorities \
                 again."
            )
        } else {
            format!(
                "{partner} changed its {}. If this was not intended, check its configuration.",
                differences.join(", its ")
            )
        }
    } else {
        format!(
            "The LACP partner on the link of {member} is {} (key {}); it was {} (key {}). Check \
             the cables and the configuration of the partner.",
            to.system, to.key, from.system, from.key
        )
    };
    let draft = team_event_draft(EventKind::LacpPartnerChanged, team, text).with("member", member);
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
