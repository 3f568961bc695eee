//! Order in which the disks of a flow are served: the disk with the least service is next. No order
//! is maintained for a flow with a single disk.

use crate::disk::Disk;
use crate::flow::Flow;
use crate::heap::Positions;

/// Adds the disk in `slot` to the order of its flow after its first request was queued.
#[inline]
pub(crate) fn enter(flow: &mut Flow, disk: &mut Disk, slot: u32, positions: &mut Positions) {
    if !disk.is_only {
        disk.served = disk.served.max(flow.member_time);
        flow.members.set(positions, slot, disk.served);
    }
}

/// Accounts for a dispatched request of `cost` operations of `disk`, and moves the disk in the
/// order of its flow.
#[inline]
pub(crate) fn serve(
    flow: &mut Flow,
    disk: &mut Disk,
    slot: u32,
    cost: u32,
    positions: &mut Positions,
) {
    if disk.is_only {
        return;
    }
    flow.member_time = disk.served;
    disk.served = disk.served.saturating_add(cost.into());
    if disk.waiting == 0 {
        flow.members.remove(positions, slot);
    } else {
        flow.members.set(positions, slot, disk.served);
    }
}
