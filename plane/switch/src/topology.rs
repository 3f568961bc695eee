//! Desired state of the data plane, set by the control plane.

use std::collections::BTreeSet;
use std::sync::Arc;

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec, TablesError};
use suimon_quantity::{BitRate, PortId, QueueId, WorkerId};
use suimon_teaming::{Distribution, MemberId};
use thiserror::Error;

/// Maximum number of workers, a bound for tables.
pub(crate) const WORKERS_MAX: usize = 64;

/// Switches and their ports. Queues are attached separately by devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Switches of the host.
    pub switches: Vec<SwitchSpec>,
    /// Ports of all switches.
    pub ports: Vec<PortTopology>,
    /// Ports that are teams, with their members.
    pub teams: Vec<TeamTopology>,
}

/// Port with several devices instead of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamTopology {
    /// Uplink port of the team. Frames are transmitted by the members' queues, not by its own.
    pub port: PortId,
    /// Devices of the members. A member of the distribution without an entry here transmits
    /// nothing.
    pub members: Vec<TeamMember>,
    /// Selection of members for frames to send, and acceptance of received frames. Can be changed
    /// live with [`DataPlane::set_distribution`](crate::DataPlane::set_distribution).
    pub distribution: Arc<Distribution>,
}

/// Member of a team. It is identified by its id and not by its slot in the distribution, which may
/// change: no frame leaves by the wrong device, whether members or distribution change first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamMember {
    /// Id of the member in the distribution.
    pub id: MemberId,
    /// Port id of its device's queues, counters and captures; not a port of a switch.
    pub port: PortId,
}

impl Topology {
    /// Returns the members of all teams.
    pub(crate) fn members(&self) -> impl Iterator<Item = &TeamMember> + '_ {
        self.teams.iter().flat_map(|team| &team.members)
    }

    /// Checks that each team is an uplink and that each member's device is used once only.
    pub(crate) fn check_teams(&self) -> Result<(), TopologyError> {
        let mut port_ids: BTreeSet<PortId> = self.ports.iter().map(|port| port.spec.id).collect();
        let mut teams = BTreeSet::new();
        for team in &self.teams {
            let is_team = |candidate: &&PortTopology| candidate.spec.id == team.port;
            let port = self.ports.iter().find(is_team);
            if port.is_none_or(|port| port.spec.role != PortRole::Uplink) {
                return Err(TopologyError::TeamNotUplink(team.port));
            }
            if !teams.insert(team.port) {
                return Err(TopologyError::DuplicateTeam(team.port));
            }
            let mut ids = BTreeSet::new();
            for member in &team.members {
                if !ids.insert(member.id) || !port_ids.insert(member.port) {
                    return Err(TopologyError::DuplicateMember(member.port));
                }
            }
        }
        Ok(())
    }
}

/// Port with its forwarding configuration and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortTopology {
    /// Properties used by the forwarding policy.
    pub spec: ForwardingPortSpec,
    /// Maximum rate in bits per second of frames received from the port. Excess frames stay in the
    /// guest's ring or the device's queue.
    pub bandwidth: Option<BitRate>,
    /// Maximum rate per second of frames from the port that are flooded; excess frames are dropped.
    pub storm_limit_fps: Option<u32>,
    /// For a NIC: true if it may receive large frames that an uplink's device coalesced, and frames
    /// coalesced in software. Otherwise frames coalesced by a device are segmented for it, and none
    /// are coalesced. For an uplink: true if received frames may be forwarded coalesced, to ports
    /// that accept them.
    pub receive_coalescing: bool,
}

/// Reason why a topology was not published.
#[derive(Debug, Error)]
pub enum TopologyError {
    /// The forwarding tables are invalid.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// A team is not a port of a switch, or not an uplink.
    #[error("port {} is a team and not an uplink of a switch; set the team as the uplink", .0.0)]
    TeamNotUplink(PortId),
    /// Two teams have the same port.
    #[error("port {} is listed as a team twice; give each team its own port", .0.0)]
    DuplicateTeam(PortId),
    /// A device is a member twice or is also a port of a switch, or two devices have the same
    /// member id.
    #[error(
        "port {} is a team's member and used elsewhere too; a member belongs to one team and to \
         no switch", .0.0
    )]
    DuplicateMember(PortId),
    /// Distribution for a port that is not a team.
    #[error("port {} is not a team any more", .0.0)]
    NoSuchTeam(PortId),
    /// A worker did not adopt the change within this number of seconds.
    #[error(
        "a worker did not adopt the new forwarding tables within {0} s; check the load of the \
         host and the log of the daemon"
    )]
    Timeout(u64),
}

/// Reason why a queue was not moved, or not in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MoveError {
    /// The queue does not exist.
    #[error("the queue does not exist; its VM or device may have been removed")]
    NoSuchQueue(QueueId),
    /// The worker does not exist.
    #[error("there is no worker {0}; `suimon worker list` lists the workers")]
    NoSuchWorker(WorkerId),
    /// A worker did not respond in time. The queue is assigned to the new worker and moves as soon
    /// as the worker runs.
    #[error(
        "the move of the queue was not confirmed in time; check with `suimon queue list` where it \
         is, and retry"
    )]
    Timeout,
}
