//! List of connected clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{NbdClient, NbdClientWay};

/// Connections of the servers that share this list, in the order of their arrival. Clones refer to
/// the same list.
#[derive(Clone, Default)]
pub struct NbdClients(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    next: u64,
    connections: BTreeMap<u64, NbdClient>,
}

impl NbdClients {
    /// Returns the current connections.
    #[must_use]
    pub fn list(&self) -> Vec<NbdClient> {
        self.lock().connections.values().cloned().collect()
    }

    /// Lists a connection as long as the returned value exists.
    pub(crate) fn note(&self, export: &str, caller: &Caller) -> Noted {
        let client =
            NbdClient { export: export.to_owned(), way: caller.way, peer: caller.peer.clone() };
        let mut book = self.lock();
        let number = book.next;
        book.next += 1;
        book.connections.insert(number, client);
        Noted { clients: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connection as long as it is listed.
pub(crate) struct Noted {
    clients: NbdClients,
    number: u64,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.clients.lock().connections.remove(&self.number);
    }
}

/// Identity of a client, for the list and log entries.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) way: NbdClientWay,
    /// Description, like `process 4711 of user 107` or `192.0.2.7:40000`.
    pub(crate) peer: String,
}
