//! Control-plane state of teams in addition to their topology.

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_quantity::PortId;
use suimon_teaming::BUCKETS;

use crate::port_record::TrafficCounters;
use crate::shared_team_state::SharedTeamState;

/// State of teams, by the switch port of the team.
#[derive(Default)]
pub(super) struct TeamRecords(pub(super) BTreeMap<PortId, TeamRecord>);

pub(super) struct TeamRecord {
    pub(super) shared: Arc<SharedTeamState>,
    /// Frames and bytes that former members carried while they belonged to the team.
    pub(super) former_member_traffic: TrafficCounters,
    /// Frame and byte counters of the members when they joined the team.
    pub(super) counters_at_join: BTreeMap<PortId, TrafficCounters>,
    /// Bytes that each bucket had carried when the loads were last taken.
    pub(super) bucket_bytes_at_last_take: Box<[u64; BUCKETS]>,
}

impl Default for TeamRecord {
    fn default() -> Self {
        Self {
            shared: Arc::new(SharedTeamState::new()),
            former_member_traffic: TrafficCounters::default(),
            counters_at_join: BTreeMap::new(),
            bucket_bytes_at_last_take: Box::new([0; BUCKETS]),
        }
    }
}

impl TeamRecords {
    /// Returns the shared state of a team; creates it on first use.
    pub(super) fn shared_team_state(&mut self, port: PortId) -> Arc<SharedTeamState> {
        Arc::clone(&self.0.entry(port).or_default().shared)
    }
}
