//! Limits on connections and buffer memory, at three levels: export, peer and host.
//!
//! Each connection has a reservation of [`RESERVED_BYTES`] of buffer memory. The export, the peer
//! and the host set aside the reservations of their maximum number of connections. A connection can
//! therefore be admitted regardless of the memory use of others. The remainder of a limit is the
//! surplus, which connections take and return. The reservation suffices to process every request,
//! in parts if it is large. Other connections therefore affect the speed of a connection but not
//! its progress, and no connection waits for memory of another one.
//!
//! Invariants
//! - The connections of a level hold at most its `buffer_max_bytes`, unless that was lowered
//!   meanwhile.
//! - Taking and returning memory needs no lock, and at most three atomic additions.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use suimon_ports::{NbdLevelUsage, NbdLimits};

/// Number of payload bytes that are reserved for each connection: the maximum size of a part of a
/// request.
pub(crate) const PAYLOAD_RESERVED_BYTES: u64 = 256 << 10;

/// Maximum number of bytes received at once while the length of the next message is unknown. One
/// system call may receive many short requests; their payloads are copied.
pub(crate) const READ_AHEAD_BYTES: usize = 256 << 10;

/// Bytes that are reserved for each connection: payload, and the buffer for received bytes. The
/// buffers of TLS are not counted.
pub const RESERVED_BYTES: u64 = PAYLOAD_RESERVED_BYTES + READ_AHEAD_BYTES as u64;

/// Scope of a limit on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NbdScope {
    /// Connections of one export together.
    Export,
    /// Connections of one peer together: a user of this host, or an address.
    Peer,
    /// Connections of all servers of the host together.
    Host,
}

/// Limit that a connection would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    /// The maximum number of connections is reached.
    #[error("{} has {max} connections, its maximum. Raise {}", scope_owner(.scope), keys(.scope).0)]
    Connections {
        /// Scope of the reached limit.
        scope: NbdScope,
        /// Maximum number of connections in the scope.
        max: u32,
    },
    /// All buffer memory in the scope is reserved for its present connections.
    #[error(
        "the {max_bytes} bytes of buffer memory of {} are reserved for its connections. Raise {}",
        scope_owner(.scope),
        keys(.scope).1
    )]
    Buffers {
        /// Scope of the reached limit.
        scope: NbdScope,
        /// Maximum size of buffer memory in the scope, in bytes.
        max_bytes: u64,
    },
}

const fn scope_owner(scope: &NbdScope) -> &'static str {
    match scope {
        NbdScope::Export => "its export",
        NbdScope::Peer => "its user or address",
        NbdScope::Host => "the host",
    }
}

/// Returns the configuration keys of the scope's limits on connections and on buffer memory.
const fn keys(scope: &NbdScope) -> (&'static str, &'static str) {
    match scope {
        NbdScope::Export => ("disk.nbd.connections_max", "disk.nbd.buffer_max_bytes"),
        NbdScope::Peer => ("host.nbd_peer_connections_max", "host.nbd_peer_buffer_max_bytes"),
        NbdScope::Host => ("host.nbd_connections_max", "host.nbd_buffer_max_bytes"),
    }
}

/// Usage and limits of one level: an export, a peer or the host.
#[derive(Debug)]
pub(crate) struct LimitLevel {
    connections: AtomicU32,
    /// Bytes that connections hold in excess of their reservations.
    surplus: AtomicU64,
    connections_max: AtomicU32,
    bytes_max: AtomicU64,
}

/// Memory ordering of the counters. They synchronise no other memory.
const ORDER: Ordering = Ordering::Relaxed;

impl LimitLevel {
    pub(crate) fn new(limits: NbdLimits) -> Self {
        Self {
            connections: AtomicU32::new(0),
            surplus: AtomicU64::new(0),
            connections_max: AtomicU32::new(limits.connections_max),
            bytes_max: AtomicU64::new(limits.buffer_bytes_max),
        }
    }

    /// Changes the limits. Connections and memory beyond a lower limit remain.
    pub(crate) fn set_limits(&self, limits: NbdLimits) {
        self.connections_max.store(limits.connections_max, ORDER);
        self.bytes_max.store(limits.buffer_bytes_max, ORDER);
    }

    pub(crate) fn usage(&self) -> NbdLevelUsage {
        let connections = self.connection_count();
        let reserved = u64::from(connections) * RESERVED_BYTES;
        NbdLevelUsage {
            connections,
            buffer_bytes: reserved.saturating_add(self.surplus.load(ORDER)),
            limits: NbdLimits {
                connections_max: self.connections_max.load(ORDER),
                buffer_bytes_max: self.bytes_max.load(ORDER),
            },
        }
    }

    pub(crate) fn connection_count(&self) -> u32 {
        self.connections.load(ORDER)
    }

    /// Checks whether another connection is possible. `scope` is the scope of this level.
    ///
    /// # Errors
    /// The limit that another connection would exceed.
    pub(crate) fn check(&self, scope: NbdScope) -> Result<(), LimitExceeded> {
        let (connections, bytes_max) = (self.connection_count(), self.bytes_max.load(ORDER));
        let max = self.connections_max.load(ORDER);
        if connections >= max {
            return Err(LimitExceeded::Connections { scope, max });
        }
        if u64::from(connections) >= bytes_max / RESERVED_BYTES {
            return Err(LimitExceeded::Buffers { scope, max_bytes: bytes_max });
        }
        Ok(())
    }

    /// Counts a connection. Callers hold the lock of the accounts.
    pub(crate) fn add_connection(&self) {
        self.connections.fetch_add(1, ORDER);
    }

    /// Removes a connection. Callers hold the lock of the accounts.
    pub(crate) fn remove_connection(&self) {
        self.connections.fetch_sub(1, ORDER);
    }

    /// Takes `bytes` bytes of the surplus. Returns false, and takes nothing, if a limit would be
    /// exceeded.
    pub(crate) fn try_charge(&self, bytes: u64) -> bool {
        let max = self.surplus_max();
        let added = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= max);
        self.surplus.fetch_update(ORDER, ORDER, added).is_ok()
    }

    /// Takes `bytes` bytes of the surplus for the daemon itself, regardless of limits.
    pub(crate) fn charge_unlimited(&self, bytes: u64) {
        self.surplus.fetch_add(bytes, ORDER);
    }

    pub(crate) fn release(&self, bytes: u64) {
        self.surplus.fetch_sub(bytes, ORDER);
    }

    /// Returns true if [`LimitLevel::try_charge`] would succeed now.
    pub(crate) fn can_charge(&self, bytes: u64) -> bool {
        let used = self.surplus.load(ORDER);
        used.checked_add(bytes).is_some_and(|sum| sum <= self.surplus_max())
    }

    /// Returns the size of the surplus in bytes: memory that is not reserved for connections.
    fn surplus_max(&self) -> u64 {
        let bytes_max = self.bytes_max.load(ORDER);
        let possible = u64::from(self.connections_max.load(ORDER)).min(bytes_max / RESERVED_BYTES);
        let reserved = possible.max(self.connection_count().into()) * RESERVED_BYTES;
        bytes_max.saturating_sub(reserved)
    }
}
