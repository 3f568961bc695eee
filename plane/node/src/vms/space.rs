//! VMs whose disks find their stores full.
//!
//! QEMU pauses a VM when there is no space for a write to a disk that it emulates (`werror=enospc`), and
//! repeats the write when the VM goes on. The driver lets it go on when a store has more space than
//! before, and now and then if there is any: how much a write needs is not known. A VM that was paused
//! on request, before or meanwhile, stays paused.
//!
//! Writes to virtio disks are queued while the VM runs. They fail when the guest is asked to turn itself
//! off or to let go of the disk, because it waits for them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, DiskController, ErrorCode, Name, VmState};
use suimon_ports::{VmCommand, VmDevice};

use super::VmEntry;
use super::driver::{Driver, Run};
use super::texts;
use crate::shared::Shared;

/// How often the stores of a VM that waits for space are queried.
const QUERY_EVERY: Duration = Duration::from_secs(1);
/// A VM that waits for space tries again after this if there is any.
const TRY_EVERY: Duration = Duration::from_secs(10);

/// A VM that was paused because there was no space for a write.
#[derive(Clone, Debug)]
pub(super) struct WaitsForSpace {
    pub(super) look_at: Instant,
    tried_at: Instant,
    /// The fewest free bytes of its stores since it was paused.
    least_free: BTreeMap<PathBuf, u64>,
    since: Instant,
}

impl WaitsForSpace {
    fn new(now: Instant) -> Self {
        Self { look_at: now, tried_at: now, least_free: BTreeMap::new(), since: now }
    }

    /// Whether the VM is to try again, with so many free bytes on its stores.
    fn look(&mut self, now: Instant, free: &BTreeMap<PathBuf, u64>) -> bool {
        self.look_at = now + QUERY_EVERY;
        let mut has_more = false;
        for (path, &bytes) in free {
            let least = self.least_free.entry(path.clone()).or_insert(bytes);
            has_more |= bytes > *least;
            *least = bytes.min(*least);
        }
        let has_any = free.values().any(|bytes| *bytes > 0);
        let tries = has_more || (has_any && now >= self.tried_at + TRY_EVERY);
        if tries {
            self.tried_at = now;
        }
        tries
    }
}

impl Driver {
    /// Names of the VM's disks that QEMU emulates.
    fn emulated_disks(&self, run: &Run) -> BTreeSet<Name> {
        let desired = self.shared.desired();
        let disks =
            desired.config.disks.iter().filter(|disk| run.stored.disks.contains(&disk.name));
        let emulated = disks.filter(|disk| DiskController::is_emulated(disk.controller));
        emulated.map(|disk| disk.name.clone()).collect()
    }

    /// The VM's CPUs run or stand still: it may wait for space now, or not any more.
    pub(super) fn follow_space(&mut self, state: VmState) {
        let Some(run) = &mut self.run else { return };
        if state != VmState::Paused {
            run.space = None;
            if std::mem::take(&mut run.stored.is_held) {
                self.save_run();
            }
            return;
        }
        let waits = run.vm.facts().waits_for_space && !run.stored.is_held;
        if waits && run.space.is_none() {
            run.space = Some(WaitsForSpace::new(Instant::now()));
            let draft = texts::paused_for_space(&self.entry, &self.stores_in_words());
            self.append(draft);
        } else if !waits {
            run.space = None;
        }
    }

    /// Stores of its emulated disks, for people: `store/a, store/b`.
    fn stores_in_words(&self) -> String {
        let Some(run) = &self.run else { return String::new() };
        let disks = self.emulated_disks(run);
        let desired = self.shared.desired();
        let of_it = desired.config.disks.iter().filter(|disk| disks.contains(&disk.name));
        let stores: BTreeSet<&Name> = of_it.map(|disk| &disk.store).collect();
        let stores: Vec<String> = stores.iter().map(|store| format!("store/{store}")).collect();
        stores.join(", ")
    }

    /// Why it is paused, if it is because a store is full.
    pub(super) fn space_reason(&self) -> Option<String> {
        self.run.as_ref()?.space.as_ref()?;
        let (stores, name) = (self.stores_in_words(), &self.entry.name);
        Some(format!(
            "there was no space for a write ({stores}); the VM goes on when there is, and \
             `suimon vm pause {name}` keeps it paused"
        ))
    }

    /// Whether it waits for space and is paused by nobody else.
    pub(super) fn waits_for_space(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.space.is_some())
    }

    /// A VM that waits for space is to stay paused.
    pub(super) fn hold(&mut self) {
        if let Some(run) = &mut self.run {
            run.space = None;
            run.stored.is_held = true;
        }
        self.save_run();
        self.publish_again();
    }

    /// Lets a VM go on that waits for space, if there may be some.
    pub(super) fn look_at_space(&mut self, now: Instant) {
        let Some(run) = self.run.as_ref() else { return };
        if run.space.as_ref().is_none_or(|space| space.look_at > now) {
            return;
        }
        let disks = self.emulated_disks(run);
        let free = self.shared.disks.free_bytes(&disks);
        self.shared.disks.query_stores();
        let space = self.run.as_mut().and_then(|run| run.space.as_mut());
        let Some(waited) = space.and_then(|space| {
            space.look(now, &free).then(|| now.saturating_duration_since(space.since))
        }) else {
            return;
        };
        match self.tell(&VmCommand::Resume) {
            Ok(()) => self.append(texts::continued_with_space(&self.entry, waited)),
            Err(error) => {
                tracing::warn!(vm = %self.entry.name, %error, "the VM does not go on with space");
            }
        }
    }

    /// Fails queued writes of the VM's virtio disks, or of those of these devices, and does not queue
    /// any, because the guest waits for them.
    pub(super) fn fail_queued_writes<'a>(&self, devices: impl Iterator<Item = &'a VmDevice>) {
        for disk in disks_of(devices) {
            self.shared.disks.fail_if_full(&disk);
        }
    }

    /// Queues writes of these devices again if the store is full.
    pub(super) fn queue_writes<'a>(&self, devices: impl Iterator<Item = &'a VmDevice>) {
        for disk in disks_of(devices) {
            self.shared.disks.wait_if_full(&disk);
        }
    }

    /// All its disks as devices.
    pub(super) fn disk_devices(&self) -> Vec<VmDevice> {
        let disks = self.run.iter().flat_map(|run| &run.stored.disks);
        disks.map(|name| VmDevice::Disk(name.to_string())).collect()
    }

    /// # Errors
    /// As [`VmEntry::check_no_queued_writes`].
    pub(super) fn check_no_queued_writes(&self) -> Result<(), ApiError> {
        let Some(run) = &self.run else { return Ok(()) };
        self.entry.check_no_queued_writes(&self.shared, &run.stored.disks)
    }
}

impl VmEntry {
    /// # Errors
    /// Writes to one of these disks of it are queued because the store is full. They would fail when
    /// the VM moves, and its file systems could become read-only.
    pub(crate) fn check_no_queued_writes(
        &self,
        shared: &Shared,
        disks: &BTreeSet<Name>,
    ) -> Result<(), ApiError> {
        match shared.disks.queued_writes(disks) {
            None => Ok(()),
            Some(disk) => {
                let text = format!(
                    "writes to disk/{disk} are queued because its store is full, and would fail; free \
                     space on the store, or set on_full = \"error\" so that the guest is told"
                );
                Err(ApiError::new(ErrorCode::Conflict, text).about(self.label()))
            }
        }
    }
}

fn disks_of<'a>(devices: impl Iterator<Item = &'a VmDevice>) -> Vec<Name> {
    let disks = devices.filter_map(|device| match device {
        VmDevice::Disk(name) => name.parse().ok(),
        VmDevice::Nic(_) | VmDevice::Vf(_) => None,
    });
    disks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(bytes: u64) -> BTreeMap<PathBuf, u64> {
        BTreeMap::from([(PathBuf::from("/srv"), bytes)])
    }

    #[test]
    fn a_vm_goes_on_with_more_space_than_before_and_tries_now_and_then_with_any() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut space = WaitsForSpace::new(start);
        // There is no report yet; then there is none, a little that was there before, and more.
        assert!(!space.look(at(1), &BTreeMap::new()));
        assert!(!space.look(at(2), &free(4096)));
        assert!(!space.look(at(3), &free(0)));
        assert!(space.look(at(4), &free(1)));
        assert_eq!(space.look_at, at(5));
        // It was paused again: `least_free` is still 0.
        let mut space = WaitsForSpace::new(at(5));
        assert!(!space.look(at(6), &free(1)));
        assert!(!space.look(at(14), &free(1)));
        assert!(space.look(at(15), &free(1)));
        assert!(!space.look(at(16), &free(1)));
        assert!(!space.look(at(60), &free(0)));
    }
}
