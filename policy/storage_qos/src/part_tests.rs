use core::time::Duration;

use proptest::prelude::*;
use suimon_quantity::{DiskId, Iops, Time, TimedRateLimit};

use crate::{
    Capacity, ConfigStep, DiskSlot, Limits, LimitsOwner, LimitsSource, NextAction, PolicyId,
    PolicyKind, PolicyShare, PolicySpec, Proposal, Store, StoreScheduler, StoreSpec, SubmitOutcome,
};

const MS: u64 = 1_000_000;
const POLICY: PolicyId = PolicyId(3);

fn time_at(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

/// Returns a scheduler with two disks of a policy whose maximum is `max`.
fn scheduler(max: u64) -> (StoreScheduler, Store) {
    let mut store = Store::new(Capacity::Declared(100_000));
    let limits = Limits { max_iops: Iops::new(max), ..Limits::default() };
    let spec = PolicySpec { kind: PolicyKind::Aggregated, limits };
    let proposals = [
        Proposal::SetPolicy(POLICY, spec),
        Proposal::SetDisk(DiskId(0), LimitsSource::Policy(POLICY)),
        Proposal::SetDisk(DiskId(1), LimitsSource::Policy(POLICY)),
    ];
    let mut scheduler = StoreScheduler::new(StoreSpec::default());
    for change in store.apply(&proposals, false).unwrap() {
        scheduler.apply(time_at(0), change);
    }
    (scheduler, store)
}

/// Simulates disks that always have 16 requests, on a device that takes no time. `change_at` is
/// called each millisecond and may return a change. Returns the time and disk of each dispatch.
fn run(
    scheduler: &mut StoreScheduler,
    (from, end): (u64, u64),
    disks: &[u32],
    mut change_at: impl FnMut(u64) -> Option<ConfigStep>,
) -> Vec<(u64, u32)> {
    let mut dispatched = Vec::new();
    let mut waiting = [0_u32; 4];
    for ms in from..end {
        let now = time_at(ms);
        if let Some(change) = change_at(ms) {
            scheduler.apply(now, change);
        }
        for &disk in disks {
            while waiting[disk as usize] < 16 {
                match scheduler.submit(now, DiskSlot(disk), 8192, 0).unwrap() {
                    SubmitOutcome::Dispatch => {
                        dispatched.push((ms, disk));
                        scheduler.handle_completion(
                            now,
                            DiskSlot(disk),
                            (crate::IoKind::Read, 8192),
                            Duration::ZERO,
                        );
                    }
                    SubmitOutcome::Queued => waiting[disk as usize] += 1,
                }
            }
        }
        let mut round = 0;
        while let NextAction::Dispatch { disk, .. } = scheduler.poll(now) {
            // Some requests were queued in an earlier run.
            waiting[disk.0 as usize] = waiting[disk.0 as usize].saturating_sub(1);
            dispatched.push((ms, disk.0));
            scheduler.handle_completion(now, disk, (crate::IoKind::Read, 8192), Duration::ZERO);
            round += 1;
            assert!(round < 10_000);
        }
    }
    dispatched
}

fn count(dispatched: &[(u64, u32)], disks: &[u32], from: u64, end: u64) -> usize {
    dispatched
        .iter()
        .filter(|(time, disk)| disks.contains(disk) && (from..end).contains(time))
        .count()
}

fn part(leased: Option<(u64, u64)>, reserved_iops: u64) -> Option<PolicyShare> {
    let leased = leased.map(|(iops, lease_end)| (iops, time_at(lease_end)));
    let max =
        Some(TimedRateLimit { leased_iops_until: leased, reserved_iops, next_iops_from: None });
    Some(PolicyShare { min_iops: 0, max })
}

#[test]
fn disks_of_a_policy_stay_within_the_nodes_share_and_a_lease_expires() {
    let (mut scheduler, _) = scheduler(5000);
    scheduler.apply(time_at(0), ConfigStep::SetPolicyShare(POLICY, part(Some((2000, 1000)), 500)));
    let dispatched = run(&mut scheduler, (0, 2000), &[0, 1], |_| None);
    let (leased, after) =
        (count(&dispatched, &[0, 1], 0, 1000), count(&dispatched, &[0, 1], 1000, 2000));
    assert!((1950..=2030).contains(&leased), "{leased}");
    assert!((480..=530).contains(&after), "{after}");
    // The disks of the policy are served equally.
    let first_count = count(&dispatched, &[0], 0, 1000);
    assert!((900..=1100).contains(&first_count), "{first_count} of {leased}");
}

#[test]
fn a_share_of_zero_permits_no_dispatch_until_it_is_raised() {
    let (mut scheduler, _) = scheduler(5000);
    scheduler.apply(time_at(0), ConfigStep::SetPolicyShare(POLICY, part(None, 0)));
    let dispatched = run(&mut scheduler, (0, 1000), &[0], |_| None);
    assert!(dispatched.len() <= 1, "{dispatched:?}");
    assert_eq!(scheduler.next_deadline(), None, "nothing is to be looked at");
    let larger_part = ConfigStep::SetPolicyShare(POLICY, part(None, 1000));
    let dispatched =
        run(&mut scheduler, (1000, 2000), &[0], |ms| (ms == 1000).then_some(larger_part));
    assert!((950..=1030).contains(&dispatched.len()), "{}", dispatched.len());
    // The policy's limits apply to this node alone again.
    let none = ConfigStep::SetPolicyShare(POLICY, None);
    let dispatched = run(&mut scheduler, (2000, 3000), &[0], |ms| (ms == 2000).then_some(none));
    assert!((4900..=5100).contains(&dispatched.len()), "{}", dispatched.len());
}

#[test]
fn a_share_applies_to_disks_added_later_and_its_minimum_is_in_effect() {
    let mut scheduler = StoreScheduler::new(StoreSpec::default());
    let share = PolicyShare { min_iops: 700, max: Some(TimedRateLimit::default()) };
    scheduler.apply(time_at(0), ConfigStep::SetPolicyShare(POLICY, Some(share)));
    let mut store = Store::new(Capacity::Declared(100_000));
    let limits = Limits { min_iops: Iops::new(2000), ..Limits::default() };
    let spec = PolicySpec { kind: PolicyKind::Aggregated, limits };
    let disk = Proposal::SetDisk(DiskId(0), LimitsSource::Policy(POLICY));
    for change in store.apply(&[Proposal::SetPolicy(POLICY, spec), disk], false).unwrap() {
        scheduler.apply(time_at(0), change);
    }
    let flow = scheduler.view(time_at(0), DiskSlot(0)).unwrap();
    assert_eq!(flow.owner, LimitsOwner::Policy(POLICY));
    assert_eq!(flow.limits.min_iops, Iops::new(700));
    assert!(run(&mut scheduler, (0, 500), &[0], |_| None).len() <= 1);
    scheduler.apply(time_at(500), ConfigStep::SetPolicyShare(POLICY, None));
    let flow = scheduler.view(time_at(500), DiskSlot(0)).unwrap();
    assert_eq!(flow.limits.min_iops, Iops::new(2000));
}

proptest! {
    /// For any sequence of shares, the operations dispatched are at most those permitted at each
    /// moment, those of the highest rate in the catch-up time, and one request per disk.
    #[test]
    fn never_more_than_the_nodes_share_permits(
        parts in prop::collection::vec((0_u64..300, 0_u64..3000, 0_u64..4000), 1..12)
    ) {
        let (mut scheduler, _) = scheduler(100_000);
        let mut changes = std::collections::BTreeMap::new();
        let mut time_ms = 0;
        for (after, reserved, leased) in parts {
            changes.insert(time_ms, part(Some((leased, time_ms + after / 2)), reserved).unwrap());
            time_ms += after + 1;
        }
        let end = time_ms + 100;
        let dispatched = run(&mut scheduler, (0, end), &[0, 1], |ms| {
            changes.get(&ms).map(|part| ConfigStep::SetPolicyShare(POLICY, Some(*part)))
        });
        let mut allowed = 0_u128;
        let mut highest = 0;
        for ms in 0..end {
            let (_, part) = changes.range(..=ms).next_back().unwrap();
            let rate = part.max.unwrap().iops_at(time_at(ms));
            highest = highest.max(rate);
            allowed += u128::from(rate);
        }
        let max = allowed / 1000 + u128::from(highest) / 50 + 3;
        prop_assert!(dispatched.len() as u128 <= max, "{} of {max}", dispatched.len());
    }
}
