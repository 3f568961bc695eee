//! Properties that hold for any events.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use suimon_failover::{
    AdapterId, DataPath, Failover, FailoverAction, FailoverEvent, FailoverReason, FailoverSpec,
    VfId,
};
use suimon_quantity::{PortId, Time};

const SPEC: FailoverSpec =
    FailoverSpec { hold_down: Duration::from_secs(10), ready_timeout: Duration::from_secs(60) };

/// Step of a random scenario, after some milliseconds.
#[derive(Clone, Debug)]
enum Step {
    Event(FailoverEvent),
    /// The guest of the NIC uses the VF that was hot-plugged, if there is one.
    TakeOffer(PortId),
    /// The VF being unplugged becomes free.
    Unplug(VfId),
    Deadline,
}

fn nic() -> impl Strategy<Value = PortId> {
    (0_u32..4).prop_map(PortId)
}

fn adapter() -> impl Strategy<Value = AdapterId> {
    (0_u32..2).prop_map(AdapterId)
}

fn vf() -> impl Strategy<Value = VfId> {
    (adapter(), 0_u16..2).prop_map(|(adapter, index)| VfId { adapter, index })
}

fn event() -> impl Strategy<Value = FailoverEvent> {
    let adapters = prop::collection::btree_set(adapter(), 0..3);
    let set = (nic(), prop_oneof![Just(0_u8), 1_u8..4], adapters).prop_map(
        |(nic, iov_weight, adapters)| FailoverEvent::NicSet {
            nic,
            iov_weight,
            adapters: adapters.into_iter().collect(),
        },
    );
    prop_oneof![
        4 => set,
        1 => nic().prop_map(|nic| FailoverEvent::NicRemoved { nic }),
        4 => vf().prop_map(|vf| FailoverEvent::VfFound { vf }),
        2 => vf().prop_map(|vf| FailoverEvent::VfLost { vf }),
        1 => adapter().prop_map(|adapter| FailoverEvent::ResetBegan { adapter }),
        2 => adapter().prop_map(|adapter| FailoverEvent::ResetEnded { adapter }),
        1 => adapter().prop_map(|adapter| FailoverEvent::DriverUnbound { adapter }),
        2 => adapter().prop_map(|adapter| FailoverEvent::DriverBound { adapter }),
        1 => nic().prop_map(|nic| FailoverEvent::MigrationBegan { nic }),
        2 => nic().prop_map(|nic| FailoverEvent::MigrationEnded { nic }),
        1 => (nic(), vf()).prop_map(|(nic, vf)| FailoverEvent::VfPathReady { nic, vf }),
        1 => (nic(), vf()).prop_map(|(nic, vf)| FailoverEvent::VfPathFailed { nic, vf }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => event().prop_map(Step::Event),
        4 => nic().prop_map(Step::TakeOffer),
        4 => vf().prop_map(Step::Unplug),
        2 => Just(Step::Deadline),
    ]
}

/// Simulated environment that carries out the actions, with the invariants to check.
#[derive(Default)]
struct World {
    /// VF that each NIC has plugged in or is releasing.
    has: BTreeMap<PortId, VfId>,
    leaving: BTreeMap<VfId, PortId>,
    on_vf: BTreeMap<PortId, VfId>,
    weights: BTreeMap<PortId, u8>,
    failed_at: BTreeMap<PortId, Time>,
    found: BTreeSet<VfId>,
    lost_at: BTreeMap<VfId, Time>,
}

impl World {
    fn carry_out(&mut self, now: Time, action: FailoverAction) {
        match action {
            FailoverAction::PlugVf { nic, vf, reason } => {
                assert_eq!(reason, FailoverReason::NextByWeight);
                assert!(!self.has.values().any(|other| *other == vf), "{vf} is given twice");
                assert!(!self.leaving.contains_key(&vf), "{vf} is not free yet");
                assert!(!self.has.contains_key(&nic), "{nic:?} has one");
                assert!(self.weights[&nic] > 0);
                let is_held_down =
                    |time: Option<&Time>| time.is_some_and(|time| now < *time + SPEC.hold_down);
                assert!(!is_held_down(self.failed_at.get(&nic)), "{nic:?} is held down");
                assert!(!is_held_down(self.lost_at.get(&vf)), "{vf} is held down");
                self.has.insert(nic, vf);
            }
            FailoverAction::UseVf { nic, vf, .. } => {
                assert_eq!(self.has.get(&nic), Some(&vf));
                assert_eq!(self.on_vf.insert(nic, vf), None, "from one VF to another");
            }
            FailoverAction::UseParavirtual { nic, reason } => {
                assert!(self.on_vf.remove(&nic).is_some(), "it was there");
                if reason.is_failure() {
                    self.failed_at.insert(nic, now);
                }
            }
            FailoverAction::UnplugVf { nic, vf, reason } => {
                assert!(!self.on_vf.contains_key(&nic), "its frames have another path first");
                assert_eq!(self.has.remove(&nic), Some(vf));
                assert_eq!(self.leaving.insert(vf, nic), None);
                if reason.is_failure() {
                    self.failed_at.insert(nic, now);
                }
            }
            FailoverAction::ReportNoVf { nic, .. } => assert!(!self.has.contains_key(&nic)),
        }
    }

    fn event(&mut self, now: Time, step: &Step) -> Option<FailoverEvent> {
        match step {
            Step::Event(event) => {
                match event {
                    FailoverEvent::NicSet { nic, iov_weight, .. } => {
                        self.weights.insert(*nic, *iov_weight);
                    }
                    FailoverEvent::NicRemoved { nic } => {
                        self.weights.remove(nic);
                    }
                    FailoverEvent::VfFound { vf } => {
                        self.found.insert(*vf);
                    }
                    // A VF that was never found cannot be lost.
                    FailoverEvent::VfLost { vf } if self.found.contains(vf) => {
                        self.lost_at.insert(*vf, now);
                    }
                    _ => {}
                }
                Some(event.clone())
            }
            Step::TakeOffer(nic) => {
                let vf = *self.has.get(nic)?;
                Some(FailoverEvent::VfPathReady { nic: *nic, vf })
            }
            Step::Unplug(vf) => {
                self.leaving.remove(vf)?;
                Some(FailoverEvent::VfReleased { vf: *vf })
            }
            Step::Deadline => None,
        }
    }
}

/// Events with their times; `None` for a deadline.
type Record = Vec<(Time, Option<FailoverEvent>)>;

fn drive(steps: &[(u64, Step)]) -> (Record, Vec<FailoverAction>) {
    let (mut failover, mut world) = (Failover::new(SPEC), World::default());
    let (mut now, mut record, mut actions) = (Time::ZERO, Vec::new(), Vec::new());
    for (ms, step) in steps {
        now = now + Duration::from_millis(*ms);
        let event = world.event(now, step);
        let removed = match &event {
            Some(FailoverEvent::NicRemoved { nic }) => Some(*nic),
            _ => None,
        };
        match &event {
            Some(event) => failover.handle(now, event),
            None => failover.handle_deadline(now),
        }
        record.push((now, event.clone()));
        while let Some(action) = failover.poll_action() {
            world.carry_out(now, action);
            actions.push(action);
        }
        if let Some(nic) = removed {
            assert!(!world.has.contains_key(&nic) && !world.on_vf.contains_key(&nic));
            world.failed_at.remove(&nic);
        }
        for nic in world.weights.keys() {
            let path = world.on_vf.get(nic).map_or(DataPath::Paravirtual, |vf| DataPath::Vf(*vf));
            assert_eq!(failover.path(*nic), Some(path), "the path is the one last reported");
        }
        if event.is_none() {
            assert!(
                failover.next_deadline().is_none_or(|deadline| deadline > now),
                "nothing is left to do"
            );
        }
    }
    (record, actions)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Each NIC has one path, no VF is assigned twice, and nothing is reassigned within the
    /// hold-down: see [`World`].
    #[test]
    fn invariants_hold_after_any_events(steps in prop::collection::vec((0_u64..8_000, step()), 1..120)) {
        drive(&steps);
    }

    #[test]
    fn serialized_events_lead_to_the_same_actions(
        steps in prop::collection::vec((0_u64..8_000, step()), 1..60),
    ) {
        let (record, actions) = drive(&steps);
        let text = serde_json::to_string(&record).unwrap();
        let read: Record = serde_json::from_str(&text).unwrap();
        let mut replayed = Failover::new(SPEC);
        let mut replayed_actions = Vec::new();
        for (now, event) in read {
            match event {
                Some(event) => replayed.handle(now, &event),
                None => replayed.handle_deadline(now),
            }
            replayed_actions.extend(std::iter::from_fn(|| replayed.poll_action()));
        }
        prop_assert_eq!(&replayed_actions, &actions);
        let text = serde_json::to_string(&replayed_actions).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<FailoverAction>>(&text).unwrap(), actions);
    }

    /// In the settled state every NIC that can have a VF has one, in descending order of weight.
    #[test]
    fn weights_are_respected(
        weights in prop::collection::vec(0_u8..=100, 1..8),
        vfs in 0_u16..8,
    ) {
        let mut failover = Failover::new(SPEC);
        let adapter = AdapterId(1);
        for index in 0..vfs {
            failover.handle(Time::ZERO, &FailoverEvent::VfFound { vf: VfId { adapter, index } });
        }
        // No NIC is connected by the adapter before all NICs exist.
        let set = |failover: &mut Failover, nic: usize, weight: u8, adapters: Vec<AdapterId>| {
            let nic = PortId(u32::try_from(nic).unwrap());
            let event = FailoverEvent::NicSet { nic, iov_weight: weight, adapters };
            failover.handle(Time::ZERO, &event);
        };
        for (nic, weight) in weights.iter().enumerate() {
            set(&mut failover, nic, *weight, vec![]);
        }
        failover.handle(Time::ZERO, &FailoverEvent::DriverUnbound { adapter });
        for (nic, weight) in weights.iter().enumerate() {
            set(&mut failover, nic, *weight, vec![adapter]);
        }
        failover.handle(Time::ZERO, &FailoverEvent::DriverBound { adapter });
        while failover.poll_action().is_some() {}
        failover.handle_deadline(Time::ZERO + SPEC.hold_down);
        let actions = std::iter::from_fn(|| failover.poll_action());
        let assigned: Vec<usize> = actions
            .filter_map(|action| match action {
                FailoverAction::PlugVf { nic, .. } => usize::try_from(nic.0).ok(),
                _ => None,
            })
            .collect();
        let mut expected: Vec<usize> =
            (0..weights.len()).filter(|nic| weights[*nic] > 0).collect();
        expected.sort_by_key(|nic| (std::cmp::Reverse(weights[*nic]), *nic));
        expected.truncate(vfs.into());
        prop_assert_eq!(assigned, expected);
    }
}
