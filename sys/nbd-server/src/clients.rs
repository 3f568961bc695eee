//! Who uses exports now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_ports::{NbdClient, NbdClientWay};

/// The connections of servers that share it, in the order in which they came. Clones are
/// the same.
#[derive(Clone, Default)]
pub struct NbdClients(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    next: u64,
    connections: BTreeMap<u64, NbdClient>,
}

impl NbdClients {
    /// Those that are connected now.
    #[must_use]
    pub fn list(&self) -> Vec<NbdClient> {
        self.lock().connections.values().cloned().collect()
    }

    /// Notes a connection for as long as what comes back lives.
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

/// A connection that is noted.
pub(crate) struct Noted {
    clients: NbdClients,
    number: u64,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.clients.lock().connections.remove(&self.number);
    }
}

/// Who has come.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) way: NbdClientWay,
    /// In words, like `process 4711 of user 107` or `192.0.2.7:40000`.
    pub(crate) peer: String,
}
