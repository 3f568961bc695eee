use suimon_quantity::Iops;

use super::*;
use crate::LimitsError;

fn min(iops: u64) -> Limits {
    Limits { min_iops: Iops::new(iops), ..Limits::default() }
}

fn own_limits(disk: u32, limits: Limits) -> Proposal {
    Proposal::SetDisk(DiskId(disk), LimitsSource::Own(limits))
}

fn with_policy(disk: u32, policy: u32) -> Proposal {
    Proposal::SetDisk(DiskId(disk), LimitsSource::Policy(PolicyId(policy)))
}

fn policy(policy: u32, kind: PolicyKind, limits: Limits) -> Proposal {
    Proposal::SetPolicy(PolicyId(policy), PolicySpec { kind, limits })
}

#[test]
fn minimums_may_reserve_90_percent_and_a_refusal_shows_the_calculation() {
    let mut store = Store::new(Capacity::Measured(10_000));
    let refusal = store.apply(&[own_limits(1, min(9001))], false).unwrap_err();
    assert!(refusal.to_string().starts_with("the sum of 1 minimum is 9001 IOPS;"), "{refusal}");
    store.apply(&[own_limits(1, min(4000)), own_limits(2, min(5000))], false).unwrap();
    let refusal = store.apply(&[own_limits(3, min(1))], false).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the sum of 3 minimums is 9001 IOPS; the permitted sum is 9000 IOPS, 90 % of the capacity \
         of 10000 IOPS (measured): lower minimums by 1 IOPS, or force the change"
    );
    assert_eq!(store.slot(DiskId(3)), None);
    store.apply(&[own_limits(3, min(1))], true).unwrap();
    assert_eq!(store.minimums_check().minimums_iops, 9001);
    // A change to a lower sum is not refused, even if the sum exceeds the capacity.
    store.set_capacity(Capacity::Declared(100));
    store.apply(&[own_limits(1, min(3999))], false).unwrap();
    store.apply(&[own_limits(4, Limits::default())], false).unwrap();
    store.apply(&[own_limits(1, min(4000))], false).unwrap_err();
}

#[test]
fn a_store_of_unknown_capacity_admits_no_minimums() {
    let mut store = Store::default();
    let refusal = store.apply(&[own_limits(1, min(1))], false).unwrap_err().to_string();
    assert!(
        refusal.contains("unknown: measure the capacity or set `capacity_iops`, or force"),
        "{refusal}"
    );
    store.apply(&[own_limits(1, Limits::default())], false).unwrap();
}

#[test]
fn a_check_changes_nothing() {
    let mut store = Store::new(Capacity::Declared(1000));
    store.apply(&[own_limits(1, min(500))], false).unwrap();
    let before = store.clone();
    assert_eq!(store.check(&[own_limits(2, min(400))]).unwrap().minimums_iops, 900);
    assert!(matches!(
        store.check(&[own_limits(2, min(401))]),
        Err(AdmissionError::Overcommitted(_))
    ));
    assert_eq!(format!("{store:?}"), format!("{before:?}"));
    // The changes are considered together: one reduces the sum so that the other is permitted.
    assert!(store.check(&[own_limits(2, min(900)), own_limits(1, Limits::default())]).is_ok());
}

#[test]
fn a_shared_minimum_counts_once_and_a_dedicated_one_for_each_disk() {
    let mut store = Store::new(Capacity::Measured(1000));
    store.apply(&[policy(1, PolicyKind::Aggregated, min(300))], false).unwrap();
    assert_eq!(store.minimums_check().minimum_count, 0);
    store.apply(&[with_policy(1, 1), with_policy(2, 1), with_policy(3, 1)], false).unwrap();
    assert_eq!(
        (store.minimums_check().minimum_count, store.minimums_check().minimums_iops),
        (1, 300)
    );
    let flows: BTreeSet<_> = (1..=3).map(|disk| store.flow(DiskId(disk))).collect();
    assert_eq!(flows.len(), 1);
    let changes = store.apply(&[policy(1, PolicyKind::Dedicated, min(300))], false).unwrap();
    assert_eq!(
        (store.minimums_check().minimum_count, store.minimums_check().minimums_iops),
        (3, 900)
    );
    assert_eq!(store.effective_limits(DiskId(2)).unwrap().owner, LimitsOwner::Disk(DiskId(2)));
    // Three new flows, three disks that move, and the removal of the shared flow last.
    assert_eq!(changes.len(), 7);
    assert!(matches!(changes.last(), Some(ConfigStep::RemoveFlow(_))));
    let excess_policy = policy(1, PolicyKind::Dedicated, min(301));
    assert!(matches!(store.apply(&[excess_policy], false), Err(AdmissionError::Overcommitted(_))));
}

#[test]
fn errors_are_reported_and_nothing_is_changed() {
    let mut store = Store::new(Capacity::Measured(1000));
    store.apply(&[policy(1, PolicyKind::Aggregated, min(300)), with_policy(1, 1)], false).unwrap();
    let cases = [
        (with_policy(2, 7), AdmissionError::NoPolicy(PolicyId(7))),
        (Proposal::RemovePolicy(PolicyId(7)), AdmissionError::NoPolicy(PolicyId(7))),
        (Proposal::RemoveDisk(DiskId(9)), AdmissionError::NoDisk(DiskId(9))),
        (
            Proposal::RemovePolicy(PolicyId(1)),
            AdmissionError::PolicyInUse { policy: PolicyId(1), disk: DiskId(1) },
        ),
        (
            own_limits(2, Limits { max_iops: Iops::new(5), ..min(6) }),
            AdmissionError::Limits(LimitsError::MinimumAboveMaximum {
                min: Iops::new(6).unwrap(),
                max: Iops::new(5).unwrap(),
            }),
        ),
    ];
    for (proposal, refusal) in cases {
        assert_eq!(store.apply(&[own_limits(5, min(1)), proposal], true), Err(refusal));
        assert_eq!(store.slot(DiskId(5)), None);
    }
    let proposals: Vec<Proposal> =
        (10..).take(DISKS_MAX).map(|disk| own_limits(disk, min(1))).collect();
    assert_eq!(store.apply(&proposals, true), Err(AdmissionError::TooManyObjects("disks")));
}

#[test]
fn slots_are_reused_and_changes_are_reported_once() {
    let mut store = Store::new(Capacity::Measured(1000));
    store
        .apply(&[own_limits(1, min(1)), own_limits(2, min(2)), own_limits(3, min(3))], false)
        .unwrap();
    assert!(store.apply(&[own_limits(2, min(2))], false).unwrap().is_empty());
    let changes =
        store.apply(&[Proposal::RemoveDisk(DiskId(2)), own_limits(4, min(4))], false).unwrap();
    let slot = DiskSlot(1);
    let (flow, holder) = (FlowSlot(2), LimitsOwner::Disk(DiskId(4)));
    assert_eq!(
        changes,
        [
            ConfigStep::RemoveDisk(slot),
            ConfigStep::SetFlow { flow, owner: holder, limits: min(4) },
            ConfigStep::SetDisk { slot, disk: DiskId(4), flow },
        ]
    );
}
