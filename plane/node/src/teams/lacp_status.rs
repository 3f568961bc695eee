//! LACP status as API types.

use serde::Serialize;
use suimon_contract::{LacpCounters, LacpMemberStatus, LacpPartnerStatus, LacpPortStatus};
use suimon_quantity::Time;
use suimon_teaming::lacp::{LagClass, MemberState, PortInfo, TeamState};

/// Converts the LACP status of a member to the API type.
pub(crate) fn lacp_status(state: &MemberState, now: Time) -> LacpMemberStatus {
    let age_ms = |time: Time| u64::try_from(now.since(time).as_millis()).unwrap_or(u64::MAX);
    let counters = state.counters;
    LacpMemberStatus {
        actor: port_status(&state.actor),
        partner: port_status(&state.partner),
        receive_state: serialized_name(&state.receive),
        periodic_state: serialized_name(&state.periodic),
        mux_state: serialized_name(&state.mux),
        selection: serialized_name(&state.selected),
        collecting: state.is_collecting,
        distributing: state.is_distributing,
        actor_churn: serialized_name(&state.actor_churn),
        partner_churn: serialized_name(&state.partner_churn),
        looped_port: state.looped_port,
        last_pdu_age_ms: state.last_pdu.map(age_ms),
        counters: LacpCounters {
            lacpdus_rx: counters.lacpdus_rx,
            lacpdus_tx: counters.lacpdus_tx,
            markers_rx: counters.markers_rx,
            markers_unanswered: counters.markers_unanswered,
            marker_responses_rx: counters.marker_responses_rx,
            marker_responses_tx: counters.marker_responses_tx,
            illegal_rx: counters.illegal_rx,
            unknown_rx: counters.unknown_rx,
            partner_changes: counters.partner_changes,
            loopbacks: counters.loopbacks,
        },
    }
}

/// Returns the partner of the group in use; `None` without one.
pub(crate) fn partner_status(state: &TeamState) -> Option<LacpPartnerStatus> {
    let group =
        state.group.filter(|group| state.members_in_use > 0 && group.class != LagClass::Defaulted);
    group.map(|group| LacpPartnerStatus {
        system: group.partner_system,
        system_priority: group.partner_system_priority,
        key: group.partner_key,
    })
}

fn port_status(info: &PortInfo) -> LacpPortStatus {
    LacpPortStatus {
        system_priority: info.system_priority,
        system: info.system,
        key: info.key,
        port_priority: info.port_priority,
        port: info.port,
        state: info.state.names().map(str::to_owned).collect(),
    }
}

/// Returns the name with which an enum value without data is serialized.
fn serialized_name(state: &impl Serialize) -> String {
    match serde_json::to_value(state) {
        Ok(serde_json::Value::String(state_name)) => state_name,
        _ => String::new(),
    }
}
