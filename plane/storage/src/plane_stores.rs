//! Stores, as the control plane has them: their limits, and which processors take part.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use crossbeam_queue::ArrayQueue;
use suimon_ports::Waker;
use suimon_quantity::{Cap, ProcessorId, StoreId};
use suimon_storage_qos::{
    Capability, Change, DiskSlot, MeasuredLatency, PolicyId, PolicyPart, Promises, Proposal,
    Refusal, Store, StoreSpec,
};

use crate::command::Command;
use crate::mail::StorageMail;
use crate::plane::{PlaneError, StoragePlane, lock};
use crate::store::StoreRole;

/// Mail that a processor has not read, at most. What is beyond waits with its sender.
const MAIL_MAX: usize = 1024;

/// The ways of mail to other processors.
pub(crate) type Peers = Arc<BTreeMap<ProcessorId, Arc<Mailbox>>>;

/// Mail for one processor.
pub(crate) struct Mailbox {
    mail: ArrayQueue<(ProcessorId, StorageMail)>,
    waker: Arc<dyn Waker>,
}

impl Mailbox {
    pub(crate) fn new(waker: Arc<dyn Waker>) -> Self {
        Self { mail: ArrayQueue::new(MAIL_MAX), waker }
    }

    #[allow(
        clippy::result_large_err,
        reason = "the mail itself goes back, and is not copied often"
    )]
    /// Puts mail in, or gives it back if there is no room.
    pub(crate) fn send(&self, from: ProcessorId, mail: StorageMail) -> Result<(), StorageMail> {
        self.mail.push((from, mail)).map_err(|(_, mail)| mail)?;
        self.waker.wake();
        Ok(())
    }

    pub(crate) fn poll(&self) -> Option<(ProcessorId, StorageMail)> {
        self.mail.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mail.is_empty()
    }
}

/// A store and who takes part in it.
pub(crate) struct PlaneStore {
    spec: StoreSpec,
    limits: Store,
    /// What all its disks may do together.
    cap: Option<Cap>,
    latency: Option<MeasuredLatency>,
    /// What is here of policies that span nodes.
    parts: BTreeMap<PolicyId, PolicyPart>,
    /// Who has the budget; nobody while no disk is in service.
    home: Option<ProcessorId>,
    /// Disks in service, by processor.
    disks: BTreeMap<ProcessorId, usize>,
}

impl PlaneStore {
    pub(crate) fn slots(&self) -> Vec<DiskSlot> {
        self.limits.disks().filter_map(|disk| self.limits.slot(disk)).collect()
    }
}

impl StoragePlane {
    /// Has a store, without disks yet; one that is there without disks in service gets
    /// this specification.
    ///
    /// # Errors
    /// It has disks in service.
    pub fn add_store(&self, store: StoreId, spec: StoreSpec) -> Result<(), PlaneError> {
        let mut stores = lock(&self.0.stores);
        if let Some(of) = stores.get_mut(&store) {
            if !of.disks.is_empty() {
                return Err(PlaneError::InService);
            }
            of.spec = spec;
            return Ok(());
        }
        let limits = Store::new(Capability::Unknown);
        let (parts, disks) = (BTreeMap::new(), BTreeMap::new());
        let of = PlaneStore { spec, limits, cap: None, latency: None, parts, home: None, disks };
        stores.insert(store, of);
        Ok(())
    }

    /// Has a store no more.
    ///
    /// # Errors
    /// It has disks in service.
    pub fn remove_store(&self, store: StoreId) -> Result<(), PlaneError> {
        let mut stores = lock(&self.0.stores);
        if stores.get(&store).is_some_and(|of| !of.disks.is_empty()) {
            return Err(PlaneError::InService);
        }
        stores.remove(&store);
        Ok(())
    }

    /// What a store can do is known, or known better.
    pub fn set_capability(&self, store: StoreId, capability: Capability) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        let change = of.limits.set_capability(capability);
        self.tell_all(store, of, &[change]);
    }

    /// Sets the latency of a store's device that a measurement found; `None`: it was not measured.
    pub fn set_latency(&self, store: StoreId, latency: Option<MeasuredLatency>) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        of.latency = latency;
        self.tell_all(store, of, &[Change::Latency(latency)]);
    }

    /// What all disks of a store may do together from now on, in normalised operations per second by
    /// the processors' clock; `None`: what they can. It holds for disks that come later, too. It is in
    /// effect when this returns.
    pub fn set_cap(&self, store: StoreId, cap: Option<Cap>) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store).filter(|of| of.cap != cap) else { return };
        of.cap = cap;
        self.tell_all(store, of, &[Change::Cap(cap)]);
        self.wait_for(stores, store);
    }

    /// What disks of a policy may do together here from now on, of one that spans nodes; `None`: what
    /// the policy says. It holds for disks that get the policy later, too. It is in effect when this
    /// returns.
    pub fn set_part(&self, store: StoreId, policy: PolicyId, part: Option<PolicyPart>) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        let before = match part {
            Some(part) => of.parts.insert(policy, part),
            None => of.parts.remove(&policy),
        };
        if before != part {
            self.tell_all(store, of, &[Change::Part(policy, part)]);
            self.wait_for(stores, store);
        }
    }

    /// Disks of a policy may do nothing until it is [said](StoragePlane::set_part) what, unless it
    /// was.
    pub fn hold_policy(&self, store: StoreId, policy: PolicyId) {
        let of_it = |of: &PlaneStore| of.parts.contains_key(&policy);
        let is_known = lock(&self.0.stores).get(&store).is_none_or(of_it);
        if !is_known {
            let nothing = PolicyPart { min_iops: 0, max: Some(Cap::default()) };
            self.set_part(store, policy, Some(nothing));
        }
    }

    /// Returns when all processors that have the store know what they were told.
    fn wait_for(&self, stores: MutexGuard<'_, BTreeMap<StoreId, PlaneStore>>, store: StoreId) {
        let processors = stores.get(&store).into_iter().flat_map(|of| of.disks.keys());
        let ways: Vec<_> = processors.filter_map(|processor| self.way(*processor)).collect();
        drop(stores);
        for way in ways {
            // Who is gone dispatches nothing any more.
            let _ = way.ask(Command::Sync);
        }
    }

    /// Changes limits of a store's disks, all or none of these; in effect at once. `force`:
    /// although more is promised than the store can keep.
    ///
    /// # Errors
    /// What is wrong with them, or that too much would be promised. Nothing was changed.
    pub fn propose(
        &self,
        store: StoreId,
        proposals: &[Proposal],
        force: bool,
    ) -> Result<(), Refusal> {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return Ok(()) };
        let changes = of.limits.propose(proposals, force)?;
        self.tell_all(store, of, &changes);
        Ok(())
    }

    /// What a store promises.
    #[must_use]
    pub fn promises(&self, store: StoreId) -> Option<Promises> {
        lock(&self.0.stores).get(&store).map(|of| of.limits.promises())
    }

    /// A disk's place in its store, once it has limits there.
    #[must_use]
    pub fn slot(&self, store: StoreId, disk: suimon_quantity::DiskId) -> Option<DiskSlot> {
        lock(&self.0.stores).get(&store)?.limits.slot(disk)
    }

    fn tell_all(&self, store: StoreId, of: &PlaneStore, changes: &[Change]) {
        for way in of.disks.keys().filter_map(|processor| self.way(*processor)) {
            way.tell(Command::Change(store, changes.to_vec()));
        }
    }

    /// A processor is about to take a disk of a store.
    pub(crate) fn join(&self, store: StoreId, to: ProcessorId) -> Result<(), PlaneError> {
        let mut stores = lock(&self.0.stores);
        let of = stores.get_mut(&store).ok_or(PlaneError::NoSuchStore)?;
        if let Some(disks) = of.disks.get_mut(&to) {
            *disks += 1;
            return Ok(());
        }
        let role = match of.home {
            None => StoreRole::Sole,
            Some(home) => {
                // Before anybody borrows.
                self.set_role(store, home, StoreRole::Home);
                StoreRole::Away(home)
            }
        };
        let way = self.way(to).ok_or(PlaneError::NoProcessor)?;
        let (spec, mut changes) = (of.spec.clone(), of.limits.changes());
        changes.push(Change::Cap(of.cap));
        changes.push(Change::Latency(of.latency));
        changes.extend(of.parts.iter().map(|(policy, part)| Change::Part(*policy, Some(*part))));
        let _ = way.ask(|reply| Command::Join { store, spec, role, changes, reply });
        of.home.get_or_insert(to);
        of.disks.insert(to, 1);
        Ok(())
    }

    /// A processor has given a disk of a store away.
    pub(crate) fn leave(&self, store: StoreId, from: ProcessorId) {
        let mut stores = lock(&self.0.stores);
        let Some(of) = stores.get_mut(&store) else { return };
        let Some(disks) = of.disks.get_mut(&from) else { return };
        *disks -= 1;
        if *disks > 0 {
            return;
        }
        of.disks.remove(&from);
        let others: Vec<ProcessorId> = of.disks.keys().copied().collect();
        if of.home == Some(from) {
            of.home = others.first().copied();
            if let Some(home) = of.home {
                // The budget goes there, and the others borrow from it there.
                self.set_role(store, from, StoreRole::Away(home));
                for other in others.iter().filter(|other| **other != home) {
                    self.set_role(store, *other, StoreRole::Away(home));
                }
            }
        }
        if let Some(way) = self.way(from) {
            way.tell(Command::Leave(store));
        }
        if let (Some(home), [alone]) = (of.home, &others[..]) {
            if home == *alone {
                self.set_role(store, home, StoreRole::Sole);
            }
        }
    }

    /// Returns when the processor knows.
    fn set_role(&self, store: StoreId, processor: ProcessorId, role: StoreRole) {
        if let Some(way) = self.way(processor) {
            let _ = way.ask(|reply| Command::Role(store, role, reply));
        }
    }
}
