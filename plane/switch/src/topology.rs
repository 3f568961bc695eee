//! What the control plane wants the data plane to be.

use std::collections::BTreeSet;
use std::sync::Arc;

use suimon_forwarding::{PortRole, PortSpec, SwitchSpec, TablesError};
use suimon_quantity::{BitRate, PortId, ProcessorId, QueueId};
use suimon_teaming::{Distribution, MemberId};
use thiserror::Error;

/// Switches and their ports. Queues come separately, from devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// The switches.
    pub switches: Vec<SwitchSpec>,
    /// Their ports.
    pub ports: Vec<PortTopology>,
    /// The ports among them that are teams.
    pub teams: Vec<TeamTopology>,
}

/// A port that has several devices in place of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamTopology {
    /// The uplink that the team is. What queues it has itself carry nothing out.
    pub port: PortId,
    /// Its members' devices. Who is not here and in the distribution has no queues.
    pub members: Vec<TeamMember>,
    /// Where frames leave and which of those that arrive are taken. Live by
    /// [`DataPlane::set_distribution`](crate::DataPlane::set_distribution).
    pub distribution: Arc<Distribution>,
}

/// A member of a team. Named by its identifier and not by its place in the distribution,
/// which another member may have in the next one: whichever of members and
/// distribution changes first, no frame leaves by the wrong device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamMember {
    /// Who it is in the distribution.
    pub id: MemberId,
    /// Under what its device's queues, counters and captures are; no port of a switch.
    pub port: PortId,
}

impl Topology {
    /// The members of all teams.
    pub(crate) fn members(&self) -> impl Iterator<Item = &TeamMember> + '_ {
        self.teams.iter().flat_map(|team| &team.members)
    }

    /// Whether each team is an uplink and each member's device is in one place only.
    pub(crate) fn check_teams(&self) -> Result<(), TopologyError> {
        let mut taken: BTreeSet<PortId> = self.ports.iter().map(|port| port.spec.id).collect();
        let mut teams = BTreeSet::new();
        for team in &self.teams {
            let is_team = |of: &&PortTopology| of.spec.id == team.port;
            let port = self.ports.iter().find(is_team);
            if port.is_none_or(|port| port.spec.role != PortRole::Uplink) {
                return Err(TopologyError::TeamIsNoUplink(team.port));
            }
            if !teams.insert(team.port) {
                return Err(TopologyError::TeamTwice(team.port));
            }
            let mut ids = BTreeSet::new();
            for member in &team.members {
                if !ids.insert(member.id) || !taken.insert(member.port) {
                    return Err(TopologyError::MemberTwice(member.port));
                }
            }
        }
        Ok(())
    }
}

/// One port and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortTopology {
    /// What forwarding needs to know of it.
    pub spec: PortSpec,
    /// Most bits per second that come in from it. What is beyond waits where it
    /// is, in the guest's ring or the device's queue.
    pub bandwidth: Option<BitRate>,
    /// Most frames per second it may cause to be flooded; the rest is dropped.
    pub storm_limit_fps: Option<u32>,
    /// A NIC's: whether it may be given large frames that an uplink's device joined
    /// from received segments, and segments of one stream joined here. Else those of a
    /// device are segmented again for it, and nothing is joined. An uplink's: whether
    /// what it received may be handed on so, to whoever wants it.
    pub receive_coalescing: bool,
}

/// Why a topology was not published. Everything is as before.
#[derive(Debug, Error)]
pub enum TopologyError {
    /// It makes no sense.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// A team is no port of a switch, or one of another kind.
    #[error("port {} is a team and no uplink of a switch; give the team an uplink's port", .0.0)]
    TeamIsNoUplink(PortId),
    /// A port is two teams.
    #[error("port {} is given as a team twice; give each team a port of its own", .0.0)]
    TeamTwice(PortId),
    /// A device is a member twice or a port of a switch too, or two devices are the
    /// same member.
    #[error(
        "port {} is a team's member and something else besides; a member is in one team, \
         once, and no port of a switch", .0.0
    )]
    MemberTwice(PortId),
    /// A distribution for a port that is no team.
    #[error("port {} is no team now", .0.0)]
    NoSuchTeam(PortId),
    /// A processor did not take it in time.
    #[error("a processor did not adopt the new tables within {0} s; see the log")]
    Stuck(u64),
}

/// Why a queue was not handed over, or not at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MoveError {
    /// There is no such queue now.
    #[error("there is no such queue now; its VM or device may be gone")]
    NoSuchQueue(QueueId),
    /// There is no such processor.
    #[error("there is no processor {0}; see the list of processors")]
    NoSuchProcessor(ProcessorId),
    /// A processor did not answer in time. The queue is counted where it is to go, and goes
    /// there when the processor comes to it.
    #[error("the hand-over was not confirmed in time; see the log")]
    Stuck,
}
