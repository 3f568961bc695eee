//! Who waits for which answer.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use suimon_nbd::Extent;
use suimon_ports::DiskClientError;

/// A request that was asked, and what came of it so far.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Where in the disk it begins.
    pub(crate) offset: u64,
    /// Where what is read goes: as many bytes as were asked for. Not there while the thread of
    /// replies fills it.
    pub(crate) bytes: Vec<u8>,
    /// How many of them have come.
    pub(crate) come: usize,
    /// What the range was told to be allocated as.
    pub(crate) extents: Vec<Extent>,
    /// Why it was not done.
    pub(crate) failure: Option<String>,
    /// Nothing more comes.
    pub(crate) is_answered: bool,
}

/// Requests of a connection that were asked, by their cookies.
#[derive(Default)]
pub(crate) struct Book {
    entries: Mutex<Entries>,
    answered: Condvar,
}

#[derive(Default)]
pub(crate) struct Entries {
    next: u64,
    pub(crate) asked: BTreeMap<u64, Asked>,
    /// Why the connection has ended.
    gone: Option<String>,
}

impl Book {
    /// Notes a request that is about to be asked.
    pub(crate) fn note(&self, asked: Asked) -> Result<u64, DiskClientError> {
        let mut entries = self.lock();
        if let Some(why) = &entries.gone {
            return Err(DiskClientError::Gone(why.clone()));
        }
        let cookie = entries.next;
        entries.next = cookie.wrapping_add(1);
        entries.asked.insert(cookie, asked);
        Ok(cookie)
    }

    /// Waits until a request was answered.
    pub(crate) fn wait(&self, cookie: u64) -> Result<Asked, DiskClientError> {
        let mut entries = self.lock();
        loop {
            let is_answered = entries.asked.get(&cookie).is_some_and(|of| of.is_answered);
            if is_answered {
                let asked = entries.asked.remove(&cookie).unwrap_or_default();
                return match asked.failure {
                    Some(why) => Err(DiskClientError::Refused(why)),
                    None => Ok(asked),
                };
            }
            if let Some(why) = entries.gone.clone() {
                entries.asked.remove(&cookie);
                return Err(DiskClientError::Gone(why));
            }
            entries = self.answered.wait(entries).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A request was answered.
    pub(crate) fn tell(&self) {
        self.answered.notify_all();
    }

    /// Nothing comes any more. The first reason stays.
    pub(crate) fn end(&self, why: &str) {
        self.lock().gone.get_or_insert_with(|| why.to_owned());
        self.answered.notify_all();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
