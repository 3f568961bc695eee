//! Which of a flow's disks is served next: the one that was served least. The only one of a flow needs
//! no order, so nothing is kept in order for it.

use crate::StoreScheduler;
use crate::disk::Disk;
use crate::flow::Flow;
use crate::heap::Places;

/// The first of a disk's requests waits now.
#[inline]
pub(crate) fn enter(flow: &mut Flow, disk: &mut Disk, slot: u32, places: &mut Places) {
    if !disk.is_only {
        disk.served = disk.served.max(flow.member_time);
        flow.members.set(places, slot, disk.served);
    }
}

/// A request of the disk in front goes, that counts as so much.
#[inline]
pub(crate) fn serve(flow: &mut Flow, disk: &mut Disk, slot: u32, cost: u32, places: &mut Places) {
    if disk.is_only {
        return;
    }
    flow.member_time = disk.served;
    disk.served = disk.served.saturating_add(cost.into());
    if disk.waiting == 0 {
        flow.members.remove(places, slot);
    } else {
        flow.members.set(places, slot, disk.served);
    }
}

impl StoreScheduler {
    /// Disks came to a flow, or left it: finds out which are its members and whether there is one only.
    pub(crate) fn list_members(&mut self, of: u32) {
        let Some(flow) = self.flows.get_mut(of as usize) else { return };
        let is_its = |disk: &Disk| disk.flow == of && disk.id.is_some();
        let count = self.disks.iter().filter(|disk| is_its(disk)).count();
        flow.members.reserve(count);
        for (slot, disk) in (0..).zip(&mut self.disks).filter(|(_, disk)| is_its(disk)) {
            disk.is_only = count == 1;
            if disk.is_only || disk.waiting > 0 {
                flow.members.set(&mut self.member_places, slot, disk.served);
            } else {
                flow.members.remove(&mut self.member_places, slot);
            }
        }
    }
}
