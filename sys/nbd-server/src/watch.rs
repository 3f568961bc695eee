//! Watch of a connection's socket with epoll(7), so that an idle connection is not polled.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

/// Number of consecutive polls with requests after which the socket is not watched any more.
const LOOKS: u32 = 2;

/// Descriptor that is readable when the socket is ready.
///
/// A watch has a cost for the writer of a socket: the kernel notifies the watcher of each message,
/// under locks that the watcher takes too. A socket is therefore watched only while the worker
/// waits for it, and not while it is polled.
pub(crate) struct SocketWatch {
    wake: OwnedFd,
    /// Events for which the socket is watched; `None` while it is not watched.
    watched: Option<EventFlags>,
    /// Number of polls with requests since the worker last slept.
    polls: u32,
}

impl SocketWatch {
    /// Watches a socket for data to receive.
    ///
    /// # Errors
    /// Memory or descriptors are exhausted.
    pub(crate) fn new(socket: &OwnedFd) -> Result<Self, Errno> {
        let wake = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut watch = Self { wake, watched: None, polls: 0 };
        watch.arm(socket, EventFlags::IN)?;
        Ok(watch)
    }

    /// Watches the socket until it is ready for `events`. If `events` is empty, does not watch it:
    /// otherwise the kernel would continuously report the end of the connection, which cannot be
    /// processed then.
    ///
    /// # Errors
    /// The socket cannot be watched.
    pub(crate) fn arm(&mut self, socket: &OwnedFd, events: EventFlags) -> Result<(), Errno> {
        self.polls = 0;
        let data = EventData::new_u64(0);
        match self.watched {
            Some(watched) if watched == events => return Ok(()),
            None if events.is_empty() => return Ok(()),
            Some(_) if events.is_empty() => {
                epoll::delete(&self.wake, socket)?;
                self.watched = None;
                return Ok(());
            }
            Some(_) => epoll::modify(&self.wake, socket, data, events)?,
            None => epoll::add(&self.wake, socket, data, events)?,
        }
        self.watched = Some(events);
        Ok(())
    }

    /// Records a poll of the socket. `has_brought` is true if the previous poll returned requests.
    /// After [`LOOKS`] of these the socket is not watched any more.
    pub(crate) fn handle_look(&mut self, socket: &OwnedFd, has_brought: bool) {
        self.polls = self.polls.saturating_add(u32::from(has_brought));
        // A socket that cannot be removed remains watched, which costs time but is harmless.
        if self.polls >= LOOKS
            && self.watched.is_some()
            && epoll::delete(&self.wake, socket).is_ok()
        {
            self.watched = None;
        }
    }

    /// Replaces the watch by a descriptor that cannot watch any socket.
    #[cfg(test)]
    pub(crate) fn lose(&mut self) {
        self.wake = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        self.watched = None;
    }
}

impl AsFd for SocketWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
