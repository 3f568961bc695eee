//! Order in which the disks of a flow are served: the disk with the least service is next. No order
//! is maintained for a flow with a single disk.

use crate::disk::Disk;
use crate::flow::Flow;
use crate::heap::Positions;

/// Adds the disk in `slot` to the order of its flow after its first request was queued.
#[inline]
pub(crate) fn insert_disk(flow: &mut Flow, disk: &mut Disk, slot: u32, positions: &mut Positions) {
    if !disk.is_only_in_flow {
        disk.served_virtual_time = disk.served_virtual_time.max(flow.member_virtual_time);
        flow.members.set(positions, slot, disk.served_virtual_time);
    }
}

/// Accounts for a dispatched request of `cost` operations of `disk`, and moves the disk in the
/// order of its flow.
#[inline]
pub(crate) fn account_service(
    flow: &mut Flow,
    disk: &mut Disk,
    slot: u32,
    cost: u32,
    positions: &mut Positions,
) {
    if disk.is_only_in_flow {
        return;
    }
    flow.member_virtual_time = disk.served_virtual_time;
    disk.served_virtual_time = disk.served_virtual_time.saturating_add(cost.into());
    if disk.waiting == 0 {
        flow.members.remove(positions, slot);
    } else {
        flow.members.set(positions, slot, disk.served_virtual_time);
    }
}
