//! Monitoring of removed network namespace names.
//!
//! `ip netns delete` removes only the name. The namespace and its devices exist while a descriptor
//! is open, as in this process. Such a device is no longer reachable by name.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use crate::namespace::DIRECTORY;

/// Buffer size in bytes for a few events, whose contents are ignored.
const EVENT_BYTES: usize = 4096;

/// Message for the case that no watch can be created.
pub(crate) const NO_WATCH_WARNING: &str = "deletion of network namespaces cannot be detected";

/// Inotify watch of the directory of names.
pub(crate) struct NamespaceNames(OwnedFd);

impl NamespaceNames {
    /// Creates an inotify instance.
    ///
    /// # Errors
    /// No file descriptor is available, or the user's limit of inotify instances is reached.
    pub(crate) fn new() -> rustix::io::Result<Self> {
        inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map(Self)
    }

    /// Watches the directory, which exists once there is a named namespace. A repeated call has no
    /// effect unless the directory was replaced.
    pub(crate) fn watch(&self) {
        let changes = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO;
        if let Err(errno) = inotify::add_watch(&self.0, DIRECTORY, changes) {
            tracing::warn!(%errno, "{NO_WATCH_WARNING}");
        }
    }

    /// Discards pending inotify events.
    pub(crate) fn clear(&self) {
        let mut events = [0; EVENT_BYTES];
        // Ends when no event is left; later events cause another wake-up.
        while matches!(rustix::io::read(&self.0, &mut events[..]), Ok(1..) | Err(Errno::INTR)) {}
    }
}

impl AsFd for NamespaceNames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
