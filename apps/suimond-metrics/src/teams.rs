//! Metrics of teams and their members, in addition to those of every port.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{TeamMemberState, TeamMemberStatus};

use crate::family::{Family, Value};
use crate::readings::Readings;

const SPEED: Family = Family::gauge(
    "suimon_team_speed_bits_per_second",
    "bits per second",
    &["team"],
    "Sum of the speeds of the active members",
);

/// Gauge of a member with the function that reads its value.
type MemberMetric = (Family, fn(&TeamMemberStatus) -> Value);

const LABELS: &[&str] = &["team", "uplink"];

const MEMBERS: [MemberMetric; 5] = [
    (
        Family::gauge(
            "suimon_team_member_active",
            "",
            LABELS,
            "1 if the member transmits frames, else 0",
        ),
        |member| Value::flag(member.state == TeamMemberState::Active),
    ),
    (
        Family::gauge(
            "suimon_team_member_usable",
            "",
            LABELS,
            "1 if the member can carry frames, 0 if it has failed. An idle standby is usable",
        ),
        |member| Value::flag(member.state != TeamMemberState::Failed),
    ),
    (
        Family::gauge(
            "suimon_team_member_receive_ratio",
            "ratio",
            LABELS,
            "Share of the member in the bytes that the team received in the last second",
        ),
        |member| Value::ratio_from_ppm(member.rx_share_ppm),
    ),
    (
        Family::gauge(
            "suimon_team_member_transmit_ratio",
            "ratio",
            LABELS,
            "Share of the member in the bytes that the team sent in the last second",
        ),
        |member| Value::ratio_from_ppm(member.tx_share_ppm),
    ),
    (
        Family::gauge(
            "suimon_team_member_flows_ratio",
            "ratio",
            LABELS,
            "Share of the flows that hashing or load balancing assigns to the member",
        ),
        |member| Value::ratio_from_ppm(member.flows_share_ppm),
    ),
];

pub(super) fn families() -> Vec<Family> {
    [SPEED].into_iter().chain(MEMBERS.map(|(family, _)| family)).collect()
}

impl Readings {
    pub(super) fn encode_teams(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let speeds = self.teams.iter().map(|team| {
            let speed = Value::real_from_integer(team.speed_mbps.saturating_mul(1_000_000));
            ([team.config.name.to_string()], speed)
        });
        SPEED.write_if_any(encoder, speeds)?;
        for (family, value) in MEMBERS {
            let members = self.teams.iter().flat_map(|team| {
                team.members.iter().map(move |member| {
                    let labels = [team.config.name.to_string(), member.uplink.to_string()];
                    (labels, value(member))
                })
            });
            family.write_if_any(encoder, members)?;
        }
        Ok(())
    }
}
