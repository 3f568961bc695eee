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
use suimon_ports::{VmCommand, VmDevice, VmRunState};

use super::VmEntry;
use super::driver::{Driver, Run};
use super::publishing::in_words;
use super::texts;
use crate::shared::Shared;

/// A VM that waits for space is resumed at most once in so many intervals of queries, and counts as
/// continued when it has run for as long.
const TRY_AFTER: u32 = 10;

/// A VM that was paused because there was no space for a write.
#[derive(Clone, Debug)]
pub(super) struct WaitsForSpace {
    /// When its stores are queried next or, if it was resumed, when it counts as continued.
    pub(super) look_at: Instant,
    /// Interval of queries.
    every: Duration,
    since: Instant,
    /// When it was resumed last; `None` before the first attempt.
    tried_at: Option<Instant>,
    /// True after an attempt, until the VM is paused again or counts as continued.
    is_on_trial: bool,
    /// The fewest free bytes of its stores since it was paused.
    least_free: BTreeMap<PathBuf, u64>,
}

impl WaitsForSpace {
    fn new(now: Instant, every: Duration) -> Self {
        Self {
            look_at: now,
            every,
            since: now,
            tried_at: None,
            is_on_trial: false,
            least_free: BTreeMap::new(),
        }
    }

    /// Returns true if the VM is to be resumed, with so many free bytes on its stores.
    fn look(&mut self, now: Instant, free: &BTreeMap<PathBuf, u64>) -> bool {
        self.look_at = now + self.every;
        let mut has_more = false;
        for (path, &bytes) in free {
            let least = self.least_free.entry(path.clone()).or_insert(bytes);
            has_more |= bytes > *least;
            *least = bytes.min(*least);
        }
        let has_any = free.values().any(|bytes| *bytes > 0);
        let is_due = now >= self.tried_at.unwrap_or(self.since) + self.every * TRY_AFTER;
        // Space that was there at the last attempt may not be enough.
        (has_more && self.tried_at.is_none()) || (has_any && is_due)
    }

    /// The VM was resumed, or could not be.
    fn note_attempt(&mut self, now: Instant, is_resumed: bool) {
        (self.tried_at, self.is_on_trial) = (Some(now), is_resumed);
        if is_resumed {
            self.look_at = now + self.every * TRY_AFTER;
        }
    }

    /// The VM is paused for space again.
    fn end_trial(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_on_trial) {
            self.look_at = now + self.every;
        }
    }

    /// Time from the pause to the last attempt.
    fn waited(&self) -> Duration {
        self.tried_at.unwrap_or(self.since).saturating_duration_since(self.since)
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

    /// Follows a change of the VM's state: it may be paused for space, or not any more.
    ///
    /// A VM that moves is not resumed here: it may run on the other node.
    pub(super) fn follow_space(&mut self, state: VmState) {
        let is_moving = self.moving.is_some();
        let every = self.query_space_every;
        let Some(run) = self.run.as_mut() else { return };
        if is_moving {
            run.space = None;
            return;
        }
        if state != VmState::Paused {
            let is_running = matches!(state, VmState::Running | VmState::Stopping);
            run.space.take_if(|space| !(is_running && space.is_on_trial));
            if std::mem::take(&mut run.stored.is_held) {
                self.save_run();
            }
            return;
        }
        if !run.vm.facts().waits_for_space || run.stored.is_held {
            run.space = None;
            return;
        }
        match &mut run.space {
            Some(space) => space.end_trial(Instant::now()),
            None => {
                run.space = Some(WaitsForSpace::new(Instant::now(), every));
                let draft = texts::paused_for_space(&self.entry, &self.stores_in_words());
                self.append(draft);
            }
        }
    }

    /// Follows the VM's state after changes of it were left aside because it moved.
    pub(super) fn follow_space_again(&mut self) {
        let Some(run) = &self.run else { return };
        let state = in_words(run.vm.facts().state);
        self.follow_space(state);
        self.publish(state);
    }

    /// The VM begins to move: it goes on where it is afterwards.
    pub(super) fn forget_space(&mut self) {
        let Some(run) = self.run.as_mut() else { return };
        let Some(space) = run.space.take() else { return };
        if space.is_on_trial && run.vm.facts().state == VmRunState::Running {
            self.append(texts::continued_with_space(&self.entry, space.waited()));
        }
        self.publish_again();
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
        if !self.waits_for_space() {
            return None;
        }
        let (stores, name) = (self.stores_in_words(), &self.entry.name);
        Some(format!(
            "paused because the store was full ({stores}); the VM resumes when there is space, \
             and `suimon vm pause {name}` keeps it paused"
        ))
    }

    /// Returns true if the VM is paused for space and by nobody else.
    pub(super) fn waits_for_space(&self) -> bool {
        let space = self.run.as_ref().and_then(|run| run.space.as_ref());
        space.is_some_and(|space| !space.is_on_trial)
    }

    /// Returns true if changes of the VM's state are told by events about space, or are no news.
    pub(super) fn tells_of_space(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.space.is_some())
    }

    /// The VM was paused on request: it stays paused when there is space.
    pub(super) fn hold(&mut self) {
        self.set_held(true);
    }

    /// The VM was resumed on request: if a write finds no space again, it goes on when there is some.
    pub(super) fn end_hold(&mut self) {
        self.set_held(false);
    }

    fn set_held(&mut self, is_held: bool) {
        let Some(run) = &mut self.run else { return };
        run.space = None;
        if std::mem::replace(&mut run.stored.is_held, is_held) != is_held {
            self.save_run();
        }
        self.publish_again();
    }

    /// Resumes a VM that waits for space if there may be some, and reports one that has gone on.
    pub(super) fn look_at_space(&mut self, now: Instant) {
        let is_moving = self.moving.is_some();
        let Some(run) = self.run.as_mut() else { return };
        let Some(space) = run.space.take_if(|space| is_moving || space.look_at <= now) else {
            return;
        };
        let state = run.vm.facts().state;
        if is_moving {
            return;
        }
        if space.is_on_trial && state == VmRunState::Running {
            return self.append(texts::continued_with_space(&self.entry, space.waited()));
        }
        let space = self.try_with_space(space, now, state);
        if let Some(run) = &mut self.run {
            run.space = Some(space);
        }
    }

    /// Resumes the VM if its stores have space. Another state than `Paused` is being reported.
    fn try_with_space(
        &mut self,
        mut space: WaitsForSpace,
        now: Instant,
        state: VmRunState,
    ) -> WaitsForSpace {
        let disks = self.run.as_ref().map(|run| self.emulated_disks(run)).unwrap_or_default();
        let free = self.shared.disks.free_bytes(&disks);
        self.shared.disks.query_stores();
        if space.look(now, &free) && state == VmRunState::Paused {
            let resumed = self.tell(&VmCommand::Resume);
            space.note_attempt(now, resumed.is_ok());
            if let Err(error) = resumed {
                tracing::warn!(
                    vm = %self.entry.name,
                    %error,
                    "cannot resume a VM that was paused because its store was full"
                );
            }
        }
        space
    }

    /// Fails queued writes of the virtio disks whose writes the guest waits for: of all while it turns
    /// itself off, and of those that it is asked to let go of. Queues those of others again.
    pub(super) fn follow_awaited_writes(&mut self) {
        let mut awaited = BTreeSet::new();
        if let Some(run) = &self.run {
            awaited.extend(run.leaving.iter().filter_map(disk_of));
            if self.stopping.is_some() {
                awaited.extend(run.stored.disks.iter().cloned());
            }
        }
        let before = std::mem::replace(&mut self.awaited_writes, awaited);
        let vm = &self.entry.name;
        for disk in before.difference(&self.awaited_writes) {
            self.shared.disks.set_writes_awaited(disk, vm, false);
        }
        // Also those of before: a disk may have been made anew.
        for disk in &self.awaited_writes {
            self.shared.disks.set_writes_awaited(disk, vm, true);
        }
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
                    "writes to disk/{disk} are queued because its store is full, and would fail; \
                     free space on the store, or set on_full = \"error\" so that the guest gets \
                     the error"
                );
                Err(ApiError::new(ErrorCode::Conflict, text).about(self.label()))
            }
        }
    }
}

fn disk_of(device: &VmDevice) -> Option<Name> {
    match device {
        VmDevice::Disk(name) => name.parse().ok(),
        VmDevice::Nic(_) | VmDevice::Vf(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(bytes: u64) -> BTreeMap<PathBuf, u64> {
        BTreeMap::from([(PathBuf::from("/srv"), bytes)])
    }

    const EVERY: Duration = Duration::from_secs(1);

    #[test]
    fn a_vm_goes_on_with_more_space_than_before_and_tries_now_and_then_with_any() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut space = WaitsForSpace::new(start, EVERY);
        // There is no report yet; then there is none, a little that was there before, and more.
        assert!(!space.look(at(1), &BTreeMap::new()));
        assert!(!space.look(at(2), &free(4096)));
        assert!(!space.look(at(3), &free(0)));
        assert!(space.look(at(4), &free(1)));
        assert_eq!(space.look_at, at(5));
        // Nothing is freed while it waits.
        let mut space = WaitsForSpace::new(at(5), EVERY);
        assert!(!space.look(at(6), &free(1)));
        assert!(!space.look(at(14), &free(1)));
        assert!(space.look(at(15), &free(1)));
        assert!(!space.look(at(60), &free(0)));
    }

    #[test]
    fn a_vm_that_is_paused_again_is_left_alone_for_a_while() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut space = WaitsForSpace::new(start, EVERY);
        assert!(!space.look(at(1), &free(0)));
        assert!(space.look(at(2), &free(1)));
        space.note_attempt(at(2), true);
        assert_eq!((space.look_at, space.waited()), (at(12), Duration::from_secs(2)));
        space.end_trial(at(3));
        assert_eq!(space.look_at, at(4));
        // More than before, but perhaps not enough.
        for seconds in 4..12 {
            assert!(!space.look(at(seconds), &free(seconds << 20)));
        }
        assert!(space.look(at(12), &free(1)));
        space.note_attempt(at(12), true);
        space.end_trial(at(30));
        assert!(space.look(at(30), &free(1)));
        assert_eq!(space.waited(), Duration::from_secs(12));
    }
}
