//! List of connected clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{NbdClient, NbdTransport};

use crate::accounting::ConnectionAccount;

/// Connections of the servers that share this list, in the order in which they were established.
/// Clones share the same list.
#[derive(Clone, Default)]
pub struct NbdClients(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    next: u64,
    connections: BTreeMap<u64, Connection>,
}

struct Connection {
    export: String,
    caller: ClientIdentity,
    share: Arc<ConnectionAccount>,
}

impl NbdClients {
    /// Returns the current connections in the order in which they were established.
    #[must_use]
    pub fn list(&self) -> Vec<NbdClient> {
        let client = |Connection { export, caller, share }: &Connection| NbdClient {
            export: export.clone(),
            transport: caller.transport,
            peer: caller.peer.clone(),
            buffer_bytes: share.buffer_bytes(),
        };
        self.lock().connections.values().map(client).collect()
    }

    /// Adds a connection to the list until the returned value is dropped.
    pub(crate) fn add(
        &self,
        export: &str,
        caller: &ClientIdentity,
        share: Arc<ConnectionAccount>,
    ) -> ClientListEntry {
        let client = Connection { export: export.to_owned(), caller: caller.clone(), share };
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.connections.insert(number, client);
        ClientListEntry { clients: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Entry of a connection in the list, removed on drop.
pub(crate) struct ClientListEntry {
    clients: NbdClients,
    number: u64,
}

impl Drop for ClientListEntry {
    fn drop(&mut self) {
        let removed = self.clients.lock().connections.remove(&self.number);
        // Dropping the share takes another lock.
        drop(removed);
    }
}

/// Identity of a client, for the list and log entries.
#[derive(Clone, Debug)]
pub(crate) struct ClientIdentity {
    pub(crate) transport: NbdTransport,
    /// Description of the process or address, like `process 4711 of user 107` or `192.0.2.7:40000`.
    pub(crate) peer: String,
}
