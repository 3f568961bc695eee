//! Examples of failures and their actions.

use std::time::Duration;

use suimon_failover::{
    AdapterId, DataPath, Failover, FailoverAction, FailoverEvent, FailoverReason, FailoverSpec,
    VfId,
};
use suimon_quantity::{PortId, Time};

const WEB: PortId = PortId(1);
const DB: PortId = PortId(2);
const WAN: AdapterId = AdapterId(0);
const VF: VfId = VfId { adapter: WAN, index: 0 };

fn time_at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn actions(failover: &mut Failover) -> Vec<FailoverAction> {
    std::iter::from_fn(|| failover.poll_action()).collect()
}

fn set(nic: PortId, iov_weight: u8) -> FailoverEvent {
    FailoverEvent::NicSet { nic, iov_weight, adapters: vec![WAN] }
}

/// Returns a state machine in which NIC `web` uses its VF at 1 s.
fn on_vf() -> Failover {
    let mut failover = Failover::new(FailoverSpec::default());
    failover.handle(time_at(0), &FailoverEvent::VfFound { vf: VF });
    failover.handle(time_at(0), &set(WEB, 50));
    let offered = actions(&mut failover);
    assert_eq!(
        offered,
        [FailoverAction::PlugVf { nic: WEB, vf: VF, reason: FailoverReason::NextByWeight }]
    );
    assert_eq!(failover.path(WEB), Some(DataPath::Paravirtual), "until the guest has it");
    failover.handle(time_at(1), &FailoverEvent::VfPathReady { nic: WEB, vf: VF });
    assert_eq!(
        actions(&mut failover),
        [FailoverAction::UseVf { nic: WEB, vf: VF, reason: FailoverReason::GuestDriverReady }]
    );
    assert_eq!(failover.path(WEB), Some(DataPath::Vf(VF)));
    failover
}

fn withdrawal(nic: PortId, reason: FailoverReason) -> [FailoverAction; 2] {
    [
        FailoverAction::UseParavirtual { nic, reason },
        FailoverAction::UnplugVf { nic, vf: VF, reason },
    ]
}

#[test]
fn a_failure_falls_back_at_once_and_the_return_is_held_down() {
    for (event, end, reason) in [
        (
            FailoverEvent::VfLost { vf: VF },
            FailoverEvent::VfFound { vf: VF },
            FailoverReason::VfLost,
        ),
        (
            FailoverEvent::ResetBegan { adapter: WAN },
            FailoverEvent::ResetEnded { adapter: WAN },
            FailoverReason::AdapterReset,
        ),
        (
            FailoverEvent::DriverUnbound { adapter: WAN },
            FailoverEvent::DriverBound { adapter: WAN },
            FailoverReason::DriverUnbound,
        ),
    ] {
        let mut failover = on_vf();
        failover.handle(time_at(100), &event);
        assert_eq!(actions(&mut failover), withdrawal(WEB, reason));
        assert_eq!(failover.path(WEB), Some(DataPath::Paravirtual));
        failover.handle(time_at(101), &FailoverEvent::VfReleased { vf: VF });
        failover.handle(time_at(102), &end);
        let retry_at = failover.next_deadline().unwrap();
        assert!(retry_at >= time_at(110), "{retry_at}");
        let mut now = retry_at;
        while failover.path(WEB) == Some(DataPath::Paravirtual) {
            failover.handle_deadline(now);
            match actions(&mut failover).as_slice() {
                [] | [FailoverAction::ReportNoVf { .. }] => {
                    now = failover.next_deadline().unwrap();
                }
                [FailoverAction::PlugVf { vf, .. }] => {
                    failover.handle(now, &FailoverEvent::VfPathReady { nic: WEB, vf: *vf });
                }
                other => panic!("{other:?}"),
            }
            assert!(now <= time_at(112), "{reason:?}");
        }
    }
}

#[test]
fn a_migration_leaves_the_vf_and_a_cancelled_one_returns_to_it_at_once() {
    let mut failover = on_vf();
    failover.handle(time_at(10), &FailoverEvent::MigrationBegan { nic: WEB });
    assert_eq!(actions(&mut failover), withdrawal(WEB, FailoverReason::Migration));
    failover.handle(time_at(11), &FailoverEvent::VfReleased { vf: VF });
    assert_eq!(actions(&mut failover), [], "not while it is being moved");
    failover.handle(time_at(12), &FailoverEvent::MigrationEnded { nic: WEB });
    let expected =
        [FailoverAction::PlugVf { nic: WEB, vf: VF, reason: FailoverReason::NextByWeight }];
    assert_eq!(actions(&mut failover), expected);
}

#[test]
fn an_assigned_vf_is_kept_and_a_missing_one_is_reported_once() {
    let mut failover = on_vf();
    failover.handle(time_at(2), &set(DB, 100));
    let expected = [FailoverAction::ReportNoVf { nic: DB, reason: FailoverReason::NoVfFree }];
    assert_eq!(actions(&mut failover), expected);
    failover.handle(time_at(3), &set(DB, 90));
    assert_eq!(actions(&mut failover), []);
    failover.handle(time_at(4), &set(WEB, 0));
    assert_eq!(actions(&mut failover), withdrawal(WEB, FailoverReason::WeightZero));
    failover.handle(time_at(5), &FailoverEvent::VfReleased { vf: VF });
    assert_eq!(
        actions(&mut failover),
        [FailoverAction::PlugVf { nic: DB, vf: VF, reason: FailoverReason::NextByWeight }]
    );
}

#[test]
fn a_vf_that_the_guest_does_not_use_is_unplugged_and_assigned_to_others_later() {
    let mut failover = Failover::new(FailoverSpec::default());
    failover.handle(time_at(0), &FailoverEvent::VfFound { vf: VF });
    failover.handle(time_at(0), &set(WEB, 50));
    failover.handle(time_at(0), &set(DB, 10));
    actions(&mut failover);
    assert_eq!(failover.next_deadline(), Some(time_at(60)));
    failover.handle_deadline(time_at(60));
    let reason = FailoverReason::NotReadyInTime;
    assert_eq!(actions(&mut failover), [FailoverAction::UnplugVf { nic: WEB, vf: VF, reason }]);
    // The event is too late: the VF is already being unplugged.
    failover.handle(time_at(61), &FailoverEvent::VfPathReady { nic: WEB, vf: VF });
    failover.handle(time_at(61), &FailoverEvent::VfReleased { vf: VF });
    assert_eq!(actions(&mut failover), []);
    failover.handle_deadline(failover.next_deadline().unwrap());
    let expected =
        [FailoverAction::PlugVf { nic: WEB, vf: VF, reason: FailoverReason::NextByWeight }];
    assert_eq!(actions(&mut failover), expected, "it is heavier");
}

#[test]
fn vfs_are_assigned_from_the_adapter_with_the_fewest_assigned_vfs() {
    let mut failover = Failover::new(FailoverSpec::default());
    for (adapter, index) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let vf = VfId { adapter: AdapterId(adapter), index };
        failover.handle(time_at(0), &FailoverEvent::VfFound { vf });
    }
    let mut assigned = Vec::new();
    for nic in 0..4 {
        let adapters = vec![AdapterId(1), AdapterId(0)];
        failover.handle(
            time_at(0),
            &FailoverEvent::NicSet { nic: PortId(nic), iov_weight: 1, adapters },
        );
        assigned.extend(actions(&mut failover).into_iter().filter_map(|action| match action {
            FailoverAction::PlugVf { vf, .. } => Some((vf.adapter.0, vf.index)),
            _ => None,
        }));
    }
    assert_eq!(assigned, [(1, 0), (0, 0), (1, 1), (0, 1)]);
}

#[test]
fn actions_display_their_reason() {
    let mut failover = on_vf();
    failover.handle(time_at(2), &FailoverEvent::ResetBegan { adapter: WAN });
    let texts: Vec<String> = actions(&mut failover).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "traffic uses the switch: the adapter is being reset",
            "VF 0 of adapter 0 is detached: the adapter is being reset",
        ]
    );
}

#[test]
fn a_vf_in_use_at_restart_stays_assigned() {
    let mut failover = Failover::new(FailoverSpec::default());
    let in_use = FailoverEvent::VfInUse { nic: WEB, iov_weight: 10, adapters: vec![WAN], vf: VF };
    failover.handle(time_at(0), &in_use);
    assert_eq!(
        actions(&mut failover),
        [FailoverAction::UseVf { nic: WEB, vf: VF, reason: FailoverReason::GuestDriverReady }]
    );
    failover.handle(time_at(0), &FailoverEvent::VfFound { vf: VF });
    failover.handle(time_at(0), &set(DB, 100));
    let expected = [FailoverAction::ReportNoVf { nic: DB, reason: FailoverReason::NoVfFree }];
    assert_eq!(actions(&mut failover), expected);
    // Reporting the VF again neither assigns it to another NIC nor assigns it twice.
    failover.handle(
        time_at(1),
        &FailoverEvent::VfInUse { nic: PortId(3), iov_weight: 1, adapters: vec![WAN], vf: VF },
    );
    failover.handle(time_at(1), &in_use);
    assert_eq!(failover.path(WEB), Some(DataPath::Vf(VF)));
    assert!(!actions(&mut failover).contains(&FailoverAction::UseVf {
        nic: PortId(3),
        vf: VF,
        reason: FailoverReason::GuestDriverReady
    }));
    // The VF can be unplugged like any other, also immediately.
    let mut failover = Failover::new(FailoverSpec::default());
    failover.handle(
        time_at(0),
        &FailoverEvent::VfInUse { nic: WEB, iov_weight: 0, adapters: vec![WAN], vf: VF },
    );
    let all_actions = actions(&mut failover);
    assert_eq!(all_actions[1..], withdrawal(WEB, FailoverReason::WeightZero));
}

/// Another process may have a VF open for as long as it runs.
#[test]
fn a_vf_that_cannot_be_attached_is_tried_again_only_if_no_other_is_free() {
    let second = VfId { adapter: WAN, index: 1 };
    let mut failover = Failover::new(FailoverSpec::default());
    failover.handle(time_at(0), &FailoverEvent::VfFound { vf: VF });
    failover.handle(time_at(0), &FailoverEvent::VfFound { vf: second });
    failover.handle(time_at(0), &set(WEB, 50));
    let mut now = time_at(0);
    let mut offered = Vec::new();
    for _ in 0..3 {
        let vf = loop {
            let plugged = actions(&mut failover).into_iter().find_map(|action| match action {
                FailoverAction::PlugVf { vf, .. } => Some(vf),
                _ => None,
            });
            if let Some(vf) = plugged {
                break vf;
            }
            now = failover.next_deadline().unwrap();
            failover.handle_deadline(now);
        };
        offered.push(vf);
        failover.handle(now, &FailoverEvent::VfPathFailed { nic: WEB, vf });
        actions(&mut failover);
        failover.handle(now, &FailoverEvent::VfReleased { vf });
    }
    assert_eq!(offered, [VF, second, VF]);
}

/// The daemon was restarted while a VF was not free, although its VM has ended.
#[test]
fn an_unreleased_vf_is_assigned_to_no_nic() {
    let mut failover = Failover::new(FailoverSpec::default());
    failover.handle(time_at(0), &FailoverEvent::VfUnplugPending { nic: WEB, vf: VF });
    failover.handle(time_at(0), &FailoverEvent::VfFound { vf: VF });
    failover.handle(time_at(0), &set(WEB, 50));
    let expected = [FailoverAction::ReportNoVf { nic: WEB, reason: FailoverReason::NoVfFree }];
    assert_eq!(actions(&mut failover), expected);
    // Reporting the VF does not change the owner of an assigned VF.
    failover.handle(time_at(1), &FailoverEvent::VfUnplugPending { nic: DB, vf: VF });
    failover.handle(time_at(2), &FailoverEvent::VfReleased { vf: VF });
    let plugged = FailoverAction::PlugVf { nic: WEB, vf: VF, reason: FailoverReason::NextByWeight };
    assert_eq!(actions(&mut failover), [plugged]);
    // A NIC that uses a VF keeps it.
    let mut failover = on_vf();
    failover.handle(time_at(2), &FailoverEvent::VfUnplugPending { nic: DB, vf: VF });
    assert_eq!((failover.path(WEB), actions(&mut failover)), (Some(DataPath::Vf(VF)), Vec::new()));
}
