//! Connections of one listener: limit of their number, replacement of idle ones, and limit of those
//! that became byte streams.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Largest number of connections of a listener that are byte streams: serial consoles and
/// migrations. They last indefinitely and must leave connections for other requests.
pub const UPGRADED_CONNECTIONS_MAX: usize = 128;

/// Bounded set of connections. A connection without a request in progress or an unread response is
/// idle, unless it was upgraded to a byte stream (RFC 9110, section 7.8). If the set is full, a new
/// connection replaces the one idle for the longest time.
#[derive(Clone)]
pub(super) struct Connections(Arc<Shared>);

struct Shared {
    connections_max: usize,
    table: Mutex<All>,
    /// Signals that a connection ended or became idle.
    changed: Notify,
}

#[derive(Default)]
struct All {
    /// Counter that orders connections by the start of their idle time. It increases with each new
    /// connection and each end of an activity.
    round: u64,
    entries: BTreeMap<u64, Entry>,
}

struct Entry {
    /// Number of requests in progress and unread responses.
    busy: usize,
    idle_since: u64,
    /// True while an upgrade is requested, and after it.
    is_upgraded: bool,
    turned_away: Arc<Notify>,
}

impl Connections {
    pub(super) fn new(connections_max: usize) -> Self {
        let changed = Notify::new();
        Self(Arc::new(Shared { connections_max, table: Mutex::default(), changed }))
    }

    /// Reserves a slot for a new connection, which starts idle. Waits only if no connection is
    /// idle. Cancellation safe.
    pub(super) async fn acquire_slot(&self) -> ConnectionSlot {
        loop {
            if let Some(slot) = self.try_place() {
                return slot;
            }
            self.0.changed.notified().await;
        }
    }

    fn try_place(&self) -> Option<ConnectionSlot> {
        let mut table = self.0.lock();
        if table.entries.len() >= self.0.connections_max {
            let idle = table.entries.iter().filter(|(_, entry)| entry.busy == 0);
            let (id, _) = idle.min_by_key(|(_, entry)| entry.idle_since)?;
            let id = *id;
            table.entries.remove(&id)?.turned_away.notify_one();
        }
        let id = table.next_round();
        let turned_away = Arc::new(Notify::new());
        let entry =
            Entry { busy: 0, idle_since: id, is_upgraded: false, turned_away: turned_away.clone() };
        table.entries.insert(id, entry);
        Some(ConnectionSlot { shared: self.0.clone(), id, turned_away })
    }

    /// Returns when there is no connection.
    pub(super) async fn wait_end(&self) {
        while !self.0.lock().entries.is_empty() {
            self.0.changed.notified().await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an activity of the connection: a request in progress, or an unread response.
    fn begin(&self, id: u64) {
        if let Some(entry) = self.lock().entries.get_mut(&id) {
            entry.busy = entry.busy.saturating_add(1);
        }
    }

    /// Ends an activity of the connection, which is idle if this was the only one.
    fn end(&self, id: u64) {
        let mut table = self.lock();
        let round = table.next_round();
        if let Some(entry) = table.entries.get_mut(&id) {
            entry.busy = entry.busy.saturating_sub(1);
            entry.idle_since = round;
        }
        drop(table);
        self.changed.notify_one();
    }
}

impl All {
    fn next_round(&mut self) -> u64 {
        self.round = self.round.wrapping_add(1);
        self.round
    }
}

/// Slot of one connection, released when dropped.
pub(super) struct ConnectionSlot {
    shared: Arc<Shared>,
    id: u64,
    turned_away: Arc<Notify>,
}

impl ConnectionSlot {
    /// Returns when the server has given the slot to another connection. The caller then closes the
    /// connection.
    pub(super) async fn wait_reassigned(&self) {
        self.turned_away.notified().await;
    }

    /// Marks the connection as busy until the returned value is dropped.
    pub(super) fn begin_activity(&self) -> Activity {
        self.shared.begin(self.id);
        Activity { shared: self.shared.clone(), id: self.id }
    }

    /// Reserves one of the [`UPGRADED_CONNECTIONS_MAX`] upgrades for the connection. Returns false
    /// if all are in use.
    pub(super) fn begin_upgrade(&self) -> bool {
        let mut table = self.shared.lock();
        let count = table.entries.values().filter(|entry| entry.is_upgraded).count();
        match table.entries.get_mut(&self.id) {
            Some(entry) if count < UPGRADED_CONNECTIONS_MAX => entry.is_upgraded = true,
            _ => return false,
        }
        true
    }

    /// Ends the upgrade attempt of [`Self::begin_upgrade`]. If it succeeded, the connection keeps
    /// its reservation and is busy until it ends.
    pub(super) fn end_upgrade(&self, is_upgraded: bool) {
        if let Some(entry) = self.shared.lock().entries.get_mut(&self.id) {
            entry.is_upgraded = is_upgraded;
            if is_upgraded {
                entry.busy = entry.busy.saturating_add(1);
            }
        }
    }

    /// Interrupts one activity of the connection until the returned value is dropped.
    pub(super) fn pause(&self) -> ActivityPause {
        self.shared.end(self.id);
        ActivityPause { shared: self.shared.clone(), id: self.id }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.shared.lock().entries.remove(&self.id);
        self.shared.changed.notify_one();
    }
}

/// Activity of a connection, which ends when dropped.
pub(super) struct Activity {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.shared.end(self.id);
    }
}

/// Interruption of an activity, which continues when dropped.
pub(super) struct ActivityPause {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for ActivityPause {
    fn drop(&mut self) {
        self.shared.begin(self.id);
    }
}
