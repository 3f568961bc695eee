//! What the VMs on vhost-user NICs and disks rely on, kept so that a daemon that starts
//! after a crash or an upgrade offers it to them again.
//!
//! Table `promises`, key: the NIC's name, or the disk's like `disk/boot`; value: [`Kept`]
//! as JSON.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use suimon_ports::{PortSpec, StateStore, StoreError, VhostUserPromise};

use crate::PortKey;
use crate::records::{decode, encode, scan_all};

const TABLE: &str = "promises";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    features: u64,
    queue_pairs: u16,
}

/// All promises, as the store has them.
pub(crate) struct Promises {
    store: Arc<dyn StateStore>,
    kept: Mutex<BTreeMap<String, Kept>>,
}

impl Promises {
    pub(crate) fn load(store: Arc<dyn StateStore>) -> Result<Self, StoreError> {
        let mut kept = BTreeMap::new();
        scan_all(store.as_ref(), TABLE, &mut |key, value| {
            kept.insert(key.to_owned(), decode(TABLE, key, value)?);
            Ok(())
        })?;
        Ok(Self { store, kept: Mutex::new(kept) })
    }

    /// The spec as the device is to be opened with.
    pub(crate) fn add_to(&self, key: &PortKey, mut spec: PortSpec) -> PortSpec {
        if let PortSpec::VhostUser(vhost_user) = &mut spec {
            vhost_user.promise = self.of(key.name().as_str());
        }
        spec
    }

    /// What is kept under a name; nothing if nobody relies on anything.
    pub(crate) fn of(&self, name: &str) -> VhostUserPromise {
        self.lock().get(name).map_or_else(VhostUserPromise::default, |kept| {
            let Kept { features, queue_pairs } = *kept;
            VhostUserPromise { features, queue_pairs }
        })
    }

    /// The NIC's VM relies on this from now on, or on nothing.
    pub(crate) fn keep(&self, key: &PortKey, promise: VhostUserPromise) {
        self.keep_named(key.name().as_str(), promise);
    }

    /// Likewise the VM of what has this name.
    pub(crate) fn keep_named(&self, name: &str, promise: VhostUserPromise) {
        let VhostUserPromise { features, queue_pairs } = promise;
        let name = name.to_owned();
        let wanted =
            (promise != VhostUserPromise::default()).then_some(Kept { features, queue_pairs });
        let mut kept = self.lock();
        if kept.get(&name).copied() == wanted {
            return;
        }
        let value = wanted.map(|wanted| encode(TABLE, &wanted)).transpose();
        let written = value.and_then(|value| self.store.commit(&[(TABLE, name.clone(), value)]));
        if let Err(error) = written {
            tracing::warn!(of = name, %error, "what its VM relies on is not on disk");
        }
        // The device that runs keeps it in any case.
        match wanted {
            Some(wanted) => kept.insert(name, wanted),
            None => kept.remove(&name),
        };
    }

    /// The NIC is gone for good.
    pub(crate) fn forget(&self, key: &PortKey) {
        if matches!(key, PortKey::Nic(_)) {
            self.keep(key, VhostUserPromise::default());
        }
    }

    /// The disk is gone for good.
    pub(crate) fn forget_disk(&self, label: &str) {
        self.keep_named(label, VhostUserPromise::default());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
