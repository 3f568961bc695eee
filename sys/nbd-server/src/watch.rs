//! How a connection is waited for.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

/// Looks in a row that bring something, behind which nothing watches the socket.
const LOOKS: u32 = 2;

/// A descriptor that is readable when there is something to do for a socket.
///
/// To be watched costs whoever writes to a socket: the kernel tells the watcher of each
/// message, under locks that the watcher takes, too. So a socket that is looked at is not
/// watched; only one that is waited for.
pub(crate) struct SocketWatch {
    wake: OwnedFd,
    /// What the socket is watched for; `None` if it is not.
    watched: Option<EventFlags>,
    /// Looks that brought something since it was waited for.
    looks: u32,
}

impl SocketWatch {
    /// Watches a socket for what comes.
    ///
    /// # Errors
    /// Memory or descriptors are short.
    pub(crate) fn new(socket: &OwnedFd) -> Result<Self, Errno> {
        let wake = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut watch = Self { wake, watched: None, looks: 0 };
        watch.arm(socket, EventFlags::IN)?;
        Ok(watch)
    }

    /// The socket is waited for: until it is ready for this.
    ///
    /// # Errors
    /// It cannot be watched.
    pub(crate) fn arm(&mut self, socket: &OwnedFd, wanted: EventFlags) -> Result<(), Errno> {
        self.looks = 0;
        let data = EventData::new_u64(0);
        match self.watched {
            Some(watched) if watched == wanted => return Ok(()),
            Some(_) => epoll::modify(&self.wake, socket, data, wanted)?,
            None => epoll::add(&self.wake, socket, data, wanted)?,
        }
        self.watched = Some(wanted);
        Ok(())
    }

    /// The socket is looked at, and the look before has brought something or not.
    pub(crate) fn handle_look(&mut self, socket: &OwnedFd, has_brought: bool) {
        self.looks = self.looks.saturating_add(u32::from(has_brought));
        // One that cannot be taken out is watched on, which costs but does no harm.
        if self.looks >= LOOKS
            && self.watched.is_some()
            && epoll::delete(&self.wake, socket).is_ok()
        {
            self.watched = None;
        }
    }

    /// It watches nothing, and cannot be made to.
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
