//! Metrics of teams and their members, beyond those that every port has.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{TeamMemberState, TeamMemberStatus};

use super::{Readings, encode_gauges, ratio};

/// What one gauge of a member is called, and what it shows.
type MemberMetric = (&'static str, &'static str, fn(&TeamMemberStatus) -> f64);

const MEMBER_METRICS: [MemberMetric; 5] = [
    ("suimon_team_member_active", "1 if frames leave by it", |member| {
        f64::from(u8::from(member.state == TeamMemberState::Active))
    }),
    ("suimon_team_member_usable", "1 if it could carry frames", |member| {
        f64::from(u8::from(member.state != TeamMemberState::Failed))
    }),
    (
        "suimon_team_member_receive_ratio",
        "Its share of the bytes that the team received in the last second",
        |member| ratio(member.rx_share_ppm),
    ),
    (
        "suimon_team_member_transmit_ratio",
        "Its share of the bytes that the team sent in the last second",
        |member| ratio(member.tx_share_ppm),
    ),
    (
        "suimon_team_member_flows_ratio",
        "Its share of the flows that are chosen for by hash or load",
        |member| ratio(member.flows_share_ppm),
    ),
];

impl Readings {
    pub(super) fn encode_teams(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) =
            ("suimon_team_speed_bits_per_second", "Speeds of its active members, added up");
        let speeds = self.teams.iter().map(|team| {
            let speed = team.speed_mbps as f64 * 1e6;
            ([("team", team.config.name.to_string())], speed)
        });
        encode_gauges(encoder, name, help, speeds)?;
        for (name, help, value) in MEMBER_METRICS {
            let members = self.teams.iter().flat_map(|team| {
                team.members.iter().map(move |member| {
                    let labels = [
                        ("team", team.config.name.to_string()),
                        ("uplink", member.uplink.to_string()),
                    ];
                    (labels, value(member))
                })
            });
            encode_gauges(encoder, name, help, members)?;
        }
        Ok(())
    }
}
