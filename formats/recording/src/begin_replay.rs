//! Creation of the policy that replays a recorded stream, for each kind of policy.

use suimon_cluster_qos::{Allocator, Member};
use suimon_quantity::Time;
use suimon_teaming::Team;
use suimon_teaming::lacp::Lacp;
use suimon_vmq::Vmq;

use crate::difference::first_difference;
use crate::policy::put_json;
use crate::scheduler_replay::SchedulerReplay;
use crate::{Difference, Policy, PolicyKind, PolicyReplay, RecordError, decode_json};

/// Creates the policy of a stream from its recorded initial state, `birth`.
///
/// # Errors
///
/// The initial state is invalid.
pub fn begin_replay(
    kind: PolicyKind,
    now: Time,
    birth: &[u8],
) -> Result<Box<dyn PolicyReplay>, RecordError> {
    Ok(match kind {
        PolicyKind::Team => Box::new(JsonReplay::<Team>::begin(now, birth)?),
        PolicyKind::Vmq => Box::new(JsonReplay::<Vmq>::begin(now, birth)?),
        PolicyKind::ClusterMember => Box::new(JsonReplay::<Member>::begin(now, birth)?),
        PolicyKind::ClusterLeader => Box::new(JsonReplay::<Allocator>::begin(now, birth)?),
        PolicyKind::Lacp => Box::new(JsonReplay::<Lacp>::begin(now, birth)?),
        PolicyKind::StorageQos => Box::new(SchedulerReplay::begin(birth)?),
    })
}

/// Replay of a policy whose records are JSON.
struct JsonReplay<P>(P);

impl<P: Policy> JsonReplay<P> {
    fn begin(now: Time, birth: &[u8]) -> Result<Self, RecordError> {
        let birth = decode_json(birth)
            .map_err(|fault| RecordError::RejectedInitialState(fault.to_string()))?;
        P::begin(now, birth).map(Self).map_err(RecordError::RejectedInitialState)
    }
}

impl<P: Policy> PolicyReplay for JsonReplay<P> {
    fn step(&mut self, now: Time, input: &[u8], decision: &mut Vec<u8>) -> Result<(), RecordError> {
        let input = decode_json(input)?;
        put_json(decision, &self.0.step(now, &input));
        Ok(())
    }

    fn describe_input(&self, input: &[u8]) -> String {
        String::from_utf8_lossy(input).into_owned()
    }

    fn difference(&self, recorded: &[u8], now: &[u8]) -> Difference {
        first_difference(recorded, now)
    }
}
