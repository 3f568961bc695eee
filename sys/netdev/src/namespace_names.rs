//! Hears when a name of a network namespace is taken away.
//!
//! `ip netns delete` only takes the name away: the namespace lives on, with the
//! devices in it, for as long as anybody holds it, as we do. Nobody else can reach
//! such a device any more.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use crate::namespace::DIRECTORY;

/// Room for a few events; what they say is not looked at.
const EVENT_BYTES: usize = 4096;

/// What follows if no watch can be had.
pub(crate) const DEAF: &str = "it will not be noticed when a network namespace is deleted";

/// Tells of changes in the directory of names.
pub(crate) struct NamespaceNames(OwnedFd);

impl NamespaceNames {
    /// # Errors
    /// Out of descriptors, or this user has too many such watches.
    pub(crate) fn new() -> rustix::io::Result<Self> {
        inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map(Self)
    }

    /// Watches the directory, which exists since there is a namespace with a name.
    /// Doing so again changes nothing, unless the directory is another one.
    pub(crate) fn watch(&self) {
        let changes = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO;
        if let Err(errno) = inotify::add_watch(&self.0, DIRECTORY, changes) {
            tracing::warn!(%errno, "{DEAF}");
        }
    }

    /// Forgets what was told so far.
    pub(crate) fn clear(&self) {
        let mut events = [0; EVENT_BYTES];
        // Ends when nothing is left; more comes with the next wait.
        while matches!(rustix::io::read(&self.0, &mut events[..]), Ok(1..) | Err(Errno::INTR)) {}
    }
}

impl AsFd for NamespaceNames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
