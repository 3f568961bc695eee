//! Policies that replay their recorded inputs, by kind.

use suimon_cluster_qos::{Allocator, Member};
use suimon_quantity::Time;
use suimon_teaming::Team;
use suimon_teaming::lacp::Lacp;
use suimon_vmq::Vmq;

use crate::differ::differ;
use crate::policy::put_text;
use crate::scheduler_machine::SchedulerMachine;
use crate::{Difference, Fault, Kind, Machine, Policy, decode};

/// Creates a policy from its recorded initial state.
///
/// # Errors
/// Fails if the initial state is invalid.
pub fn begin(kind: Kind, at: Time, birth: &[u8]) -> Result<Box<dyn Machine>, Fault> {
    Ok(match kind {
        Kind::Team => Box::new(Driven::<Team>::begin(at, birth)?),
        Kind::Vmq => Box::new(Driven::<Vmq>::begin(at, birth)?),
        Kind::ClusterMember => Box::new(Driven::<Member>::begin(at, birth)?),
        Kind::ClusterLeader => Box::new(Driven::<Allocator>::begin(at, birth)?),
        Kind::Lacp => Box::new(Driven::<Lacp>::begin(at, birth)?),
        Kind::StorageQos => Box::new(SchedulerMachine::begin(birth)?),
    })
}

/// Replay of a policy with JSON records.
struct Driven<P>(P);

impl<P: Policy> Driven<P> {
    fn begin(at: Time, birth: &[u8]) -> Result<Self, Fault> {
        let birth = decode(birth).map_err(|fault| Fault::Birth(fault.to_string()))?;
        P::begin(at, birth).map(Self).map_err(Fault::Birth)
    }
}

impl<P: Policy> Machine for Driven<P> {
    fn step(&mut self, at: Time, input: &[u8], decision: &mut Vec<u8>) -> Result<(), Fault> {
        let input = decode(input)?;
        put_text(decision, &self.0.step(at, &input));
        Ok(())
    }

    fn tell_input(&self, input: &[u8]) -> String {
        String::from_utf8_lossy(input).into_owned()
    }

    fn differ(&self, recorded: &[u8], now: &[u8]) -> Difference {
        differ(recorded, now)
    }
}
