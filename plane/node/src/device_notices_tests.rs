use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use suimon_ports::{DeviceNotice, NegotiatedFeatures};
use suimon_quantity::PortId;

use super::{DeviceNotices, DeviceOwner, QUEUED_NOTICES_MAX, UnannouncedNotices};
use crate::command::Command;

fn late() -> Arc<UnannouncedNotices> {
    Arc::default()
}

fn features_committed(queue_pairs: u16) -> DeviceNotice {
    DeviceNotice::FeaturesCommitted(NegotiatedFeatures { features: 1, queue_pairs })
}

fn negotiated(queue_pairs: u16) -> DeviceNotice {
    DeviceNotice::Negotiated { features: 1, queue_pairs }
}

/// Repeated notices of one front-end occupy one entry of the control thread's queue, so that
/// notices of other devices fit.
#[test]
fn many_notices_of_a_device_queue_one_command() {
    let (commands, receiver) = sync_channel::<Command>(2);
    let hostile = DeviceNotices::new(DeviceOwner::Port(PortId(1)), 1, commands.clone(), late());
    let other = DeviceNotices::new(DeviceOwner::Port(PortId(2)), 1, commands, late());
    for round in 0..10_000 {
        hostile.put(features_committed(round % 2 + 1));
        hostile.put(negotiated(round % 2 + 1));
    }
    other.put(DeviceNotice::LinkUp);
    assert_eq!(receiver.try_iter().count(), 2);
    assert_eq!(hostile.take_announced(), [features_committed(2), negotiated(2)]);
    assert_eq!(other.take_announced(), [DeviceNotice::LinkUp]);
    other.put(DeviceNotice::LinkUp);
    assert_eq!(receiver.try_iter().count(), 1);
}

#[test]
fn the_newest_notices_and_those_about_the_device_state_are_kept() {
    let (commands, _receiver) = sync_channel::<Command>(1);
    let notices = DeviceNotices::new(DeviceOwner::Port(PortId(1)), 1, commands, late());
    let lost = DeviceNotice::DeviceLost { reason: "gone".to_owned() };
    notices.put(features_committed(1));
    notices.put(lost.clone());
    let down = |round: usize| DeviceNotice::LinkDown { reason: round.to_string() };
    for round in 0..1000 {
        notices.put(DeviceNotice::LinkUp);
        notices.put(down(round));
    }
    notices.put(DeviceNotice::LinkUp);
    let kept_notices = Vec::from(notices.take());
    assert_eq!(kept_notices.len(), QUEUED_NOTICES_MAX);
    assert_eq!(kept_notices[..2], [features_committed(1), lost]);
    assert_eq!(
        kept_notices[QUEUED_NOTICES_MAX - 3..],
        [DeviceNotice::LinkUp, down(999), DeviceNotice::LinkUp]
    );
}

/// A lost device has no further notices that would send a command.
#[test]
fn notices_without_room_in_the_queue_are_polled() {
    let (commands, receiver) = sync_channel::<Command>(1);
    let late_notices = late();
    let first =
        DeviceNotices::new(DeviceOwner::Port(PortId(1)), 1, commands.clone(), late_notices.clone());
    let lost = DeviceNotices::new(DeviceOwner::Port(PortId(2)), 1, commands, late_notices.clone());
    first.put(DeviceNotice::LinkUp);
    let reason = "it was removed".to_owned();
    lost.put(DeviceNotice::DeviceLost { reason: reason.clone() });
    // The device is contained once, however many notices it has.
    (0..1000).for_each(|_| lost.put(features_committed(1)));
    assert_eq!(receiver.try_iter().count(), 1);
    let late_devices = late_notices.take();
    assert_eq!(late_devices.len(), 1);
    assert_eq!(
        late_devices[0].take_announced(),
        [DeviceNotice::DeviceLost { reason }, features_committed(1)]
    );
    assert!(late_notices.take().is_empty());
    lost.put(DeviceNotice::LinkUp);
    assert_eq!(receiver.try_iter().count(), 1, "the next one sends a command");
}
