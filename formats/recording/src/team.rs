//! Recording of the inputs and decisions of a team of uplinks ([`Team`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use suimon_quantity::Time;
use suimon_teaming::{
    AnnounceRequest, BUCKETS, BucketLoad, Distribution, MemberId, MemberLink, Team, TeamChange,
    TeamEvent, TeamPort, TeamSpec, TeamSpecError, UnknownMember,
};

use crate::{Policy, PolicyKind, RecordSink, Recorded};

/// Recorded input of a team's state machine ([`Team`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TeamInput {
    /// Call of [`Team::handle_member_link`].
    #[serde(rename = "member")]
    MemberLink {
        /// Member that the link belongs to.
        member: MemberId,
        /// State of the member's link.
        link: MemberLink,
    },
    /// Call of [`Team::set_ports`].
    Ports(Vec<TeamPort>),
    /// Call of [`Team::set_spec`].
    Spec(TeamSpec),
    /// Call of [`Team::handle_loads`]. Contains the buckets with traffic or a member, by index.
    Loads(Vec<(u16, BucketLoad)>),
}

/// Decision of a team's state machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TeamDecision {
    /// Reason for which the team rejected the input and did not change; `None` if it did not reject
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "refused")]
    pub refusal_reason: Option<String>,
    /// New distribution; `None` if it did not change.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")]
    pub distribution: Option<Arc<Distribution>>,
    /// Announcements of port addresses to send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub announcements: Vec<AnnounceRequest>,
    /// State changes to report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TeamEvent>,
}

#[allow(clippy::ref_option, reason = "as serde calls it")]
fn shared<S: Serializer>(
    distribution: &Option<Arc<Distribution>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    distribution.as_deref().serialize(serializer)
}

impl From<&TeamChange> for TeamDecision {
    fn from(change: &TeamChange) -> Self {
        Self {
            refusal_reason: None,
            distribution: change.distribution.clone(),
            announcements: change.announcements.clone(),
            events: change.events.clone(),
        }
    }
}

fn decided<E: ToString>(result: &Result<TeamChange, E>) -> TeamDecision {
    match result {
        Ok(change) => change.into(),
        Err(error) => {
            TeamDecision { refusal_reason: Some(error.to_string()), ..TeamDecision::default() }
        }
    }
}

impl Policy for Team {
    const KIND: PolicyKind = PolicyKind::Team;
    type InitialState = TeamSpec;
    type Input = TeamInput;
    type Decision = TeamDecision;

    fn begin(_at: Time, birth: TeamSpec) -> Result<Self, String> {
        Self::new(birth).map_err(|error| error.to_string())
    }

    fn step(&mut self, _at: Time, input: &TeamInput) -> TeamDecision {
        match input {
            TeamInput::MemberLink { member, link } => {
                decided(&self.handle_member_link(*member, *link))
            }
            TeamInput::Ports(ports) => (&self.set_ports(ports)).into(),
            TeamInput::Spec(spec) => decided(&self.set_spec(spec.clone())),
            TeamInput::Loads(changed) => {
                let mut loads = Box::new([BucketLoad::default(); BUCKETS]);
                for (bucket, load) in changed {
                    if let Some(slot) = loads.get_mut(usize::from(*bucket)) {
                        *slot = *load;
                    }
                }
                (&self.handle_loads(&loads)).into()
            }
        }
    }
}

impl Recorded<Team> {
    /// Creates the policy as [`Team::new`] does, and starts recording if there is a `sink`; `name`
    /// is that of the stream.
    ///
    /// # Errors
    ///
    /// As [`Team::new`].
    pub fn record_team(
        sink: Option<&Arc<dyn RecordSink>>,
        (now, name): (Time, &str),
        spec: TeamSpec,
    ) -> Result<Self, TeamSpecError> {
        let policy = Team::new(spec.clone())?;
        Ok(Self::start(policy, sink, (now, name), || spec))
    }

    /// As [`Team::handle_member_link`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Team::handle_member_link`].
    pub fn handle_member_link(
        &mut self,
        now: Time,
        member: MemberId,
        link: MemberLink,
    ) -> Result<TeamChange, UnknownMember> {
        let result = self.policy.handle_member_link(member, link);
        self.record(now, || (TeamInput::MemberLink { member, link }, decided(&result)));
        result
    }

    /// As [`Team::set_ports`]; records the call.
    pub fn set_ports(&mut self, now: Time, ports: &[TeamPort]) -> TeamChange {
        let change = self.policy.set_ports(ports);
        self.record(now, || (TeamInput::Ports(ports.to_vec()), TeamDecision::from(&change)));
        change
    }

    /// As [`Team::set_spec`]; records the call.
    ///
    /// # Errors
    ///
    /// As [`Team::set_spec`].
    pub fn set_spec(&mut self, now: Time, spec: TeamSpec) -> Result<TeamChange, TeamSpecError> {
        let recorded_spec = self.buffer.is_some().then(|| spec.clone());
        let result = self.policy.set_spec(spec);
        if let Some(recorded_spec) = recorded_spec {
            self.record(now, || (TeamInput::Spec(recorded_spec), decided(&result)));
        }
        result
    }

    /// As [`Team::handle_loads`]; records the call.
    pub fn handle_loads(&mut self, now: Time, loads: &[BucketLoad; BUCKETS]) -> TeamChange {
        let change = self.policy.handle_loads(loads);
        self.record(now, || {
            let nonzero = (0..).zip(loads).filter(|(_, load)| **load != BucketLoad::default());
            let loads = nonzero.map(|(bucket, load)| (bucket, *load)).collect();
            (TeamInput::Loads(loads), TeamDecision::from(&change))
        });
        change
    }
}
