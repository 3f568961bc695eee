//! Accounting of the connections and buffer memory of all servers of the host, against limits.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{NbdLimits, NbdUsage};

use crate::limit_level::{LimitExceeded, LimitLevel, NbdScope, RESERVED_BYTES};
use crate::origin::Origin;

/// Accounting of the connections and buffer memory of a host's servers. Clones share the same
/// accounts.
#[derive(Clone)]
pub struct NbdAccounting(Arc<Accounts>);

struct Accounts {
    host: LimitLevel,
    /// Number of requests delayed, or processed in parts, for lack of buffer memory.
    shortages: AtomicU64,
    state: Mutex<Book>,
}

/// Accounts of the peers and exports that have at least one connection.
struct Book {
    peer_limits: NbdLimits,
    peers: BTreeMap<Origin, Arc<LimitLevel>>,
    exports: BTreeMap<String, Arc<LimitLevel>>,
}

impl Default for NbdAccounting {
    /// Returns accounts with the default limits.
    fn default() -> Self {
        let state = Book {
            peer_limits: NbdLimits::PEER_DEFAULT,
            peers: BTreeMap::new(),
            exports: BTreeMap::new(),
        };
        Self(Arc::new(Accounts {
            host: LimitLevel::new(NbdLimits::HOST_DEFAULT),
            shortages: AtomicU64::new(0),
            state: Mutex::new(state),
        }))
    }
}

impl fmt::Debug for NbdAccounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NbdAccounting").field(&self.0.host).finish()
    }
}

impl NbdAccounting {
    /// Changes the limits of the host and of each peer. Connections and memory beyond a lower limit
    /// remain.
    pub fn set_limits(&self, host: NbdLimits, peer: NbdLimits) {
        let mut state = self.lock();
        self.0.host.set_limits(host);
        state.peer_limits = peer;
        state.peers.values().for_each(|level| level.set_limits(peer));
    }

    /// Changes the limits of an export for its present connections. The limits of a later
    /// connection are those given to [`NbdAccounting::admit`].
    pub fn set_export_limits(&self, export: &str, limits: NbdLimits) {
        if let Some(level) = self.lock().exports.get(export) {
            level.set_limits(limits);
        }
    }

    /// Returns use and limits of the host, and of the peers and exports that have connections.
    #[must_use]
    pub fn usage(&self) -> NbdUsage {
        let state = self.lock();
        let peers = state.peers.iter().map(|(origin, level)| (origin.to_string(), level.usage()));
        let exports = state.exports.iter().map(|(name, level)| (name.clone(), level.usage()));
        NbdUsage {
            host: self.0.host.usage(),
            peers: peers.collect(),
            exports: exports.collect(),
            delayed_requests: self.0.shortages.load(Ordering::Relaxed),
        }
    }

    /// Checks whether the host and a peer may have another connection.
    ///
    /// # Errors
    /// The limit that another connection would exceed.
    pub(crate) fn check(&self, origin: Origin) -> Result<(), LimitExceeded> {
        self.0.host.check(NbdScope::Host)?;
        self.lock().peers.get(&origin).map_or(Ok(()), |level| level.check(NbdScope::Peer))
    }

    /// Counts a connection until the returned account is dropped. `limits` become the limits of the
    /// export.
    ///
    /// # Errors
    /// The limit that the connection would exceed; it is not counted.
    pub(crate) fn admit(
        &self,
        origin: Origin,
        export: &str,
        limits: NbdLimits,
    ) -> Result<ConnectionAccount, LimitExceeded> {
        let mut state = self.lock();
        let new = |limits| Arc::new(LimitLevel::new(limits));
        let of_export = state.exports.get(export).cloned().unwrap_or_else(|| new(limits));
        of_export.set_limits(limits);
        let of_peer = state.peers.get(&origin).cloned().unwrap_or_else(|| new(state.peer_limits));
        of_export.check(NbdScope::Export)?;
        of_peer.check(NbdScope::Peer)?;
        self.0.host.check(NbdScope::Host)?;
        for level in [&*of_export, &*of_peer, &self.0.host] {
            level.add_connection();
        }
        state.exports.insert(export.to_owned(), Arc::clone(&of_export));
        state.peers.insert(origin, Arc::clone(&of_peer));
        let client = Counted { export: (export.to_owned(), of_export), peer: (origin, of_peer) };
        Ok(ConnectionAccount {
            budgets: self.clone(),
            client: Some(client),
            surplus: AtomicU64::new(0),
        })
    }

    /// Returns the account of a connection of the daemon itself, which is always admitted. Its
    /// memory is counted.
    pub(crate) fn admit_daemon(&self) -> ConnectionAccount {
        self.0.host.charge_unlimited(RESERVED_BYTES);
        ConnectionAccount { budgets: self.clone(), client: None, surplus: AtomicU64::new(0) }
    }

    /// Removes a connection. Its surplus memory must have been released before.
    fn remove(&self, client: Option<&Counted>) {
        let mut state = self.lock();
        let Some(Counted { export, peer }) = client else {
            return self.0.host.release(RESERVED_BYTES);
        };
        for level in [&*export.1, &*peer.1, &self.0.host] {
            level.remove_connection();
        }
        if export.1.connection_count() == 0 {
            state.exports.remove(&export.0);
        }
        if peer.1.connection_count() == 0 {
            state.peers.remove(&peer.0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Account of one connection: adds the connection and its memory to the accounts of its export, its
/// peer and the host, until it is dropped.
#[derive(Debug)]
pub struct ConnectionAccount {
    budgets: NbdAccounting,
    /// Accounts of the client; `None` for a connection of the daemon itself, whose memory only the
    /// host counts.
    client: Option<Counted>,
    /// Bytes that the connection has taken in excess of its reservation.
    surplus: AtomicU64,
}

/// Accounts in which the connection of a client is counted.
#[derive(Debug)]
struct Counted {
    export: (String, Arc<LimitLevel>),
    peer: (Origin, Arc<LimitLevel>),
}

impl ConnectionAccount {
    /// Returns the buffer memory of the connection in bytes, including its reservation.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        RESERVED_BYTES.saturating_add(self.surplus.load(Ordering::Relaxed))
    }

    fn levels(&self) -> impl Iterator<Item = &LimitLevel> {
        let client = self.client.iter();
        client.flat_map(|budget| [&*budget.export.1, &*budget.peer.1]).chain([&self.budgets.0.host])
    }

    /// Takes `bytes` bytes in excess of the reservation. Returns false, and takes nothing, if a
    /// limit would be exceeded.
    pub(crate) fn try_charge(&self, bytes: u64) -> bool {
        for (count, level) in self.levels().enumerate() {
            if !level.try_charge(bytes) {
                self.levels().take(count).for_each(|level| level.release(bytes));
                return false;
            }
        }
        self.surplus.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// Returns true if [`ConnectionAccount::try_charge`] would succeed now.
    pub(crate) fn can_charge(&self, bytes: u64) -> bool {
        self.levels().all(|level| level.can_charge(bytes))
    }

    /// Returns `bytes` bytes charged by [`ConnectionAccount::try_charge`].
    pub(crate) fn release(&self, bytes: u64) {
        self.levels().for_each(|level| level.release(bytes));
        self.surplus.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Records that a request is delayed or processed in parts for lack of memory.
    pub(crate) fn record_shortage(&self) {
        self.budgets.0.shortages.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for ConnectionAccount {
    fn drop(&mut self) {
        self.release(self.surplus.load(Ordering::Relaxed));
        self.budgets.remove(self.client.as_ref());
    }
}

#[cfg(test)]
#[path = "accounting_tests.rs"]
mod tests;
