//! Detection of removed names of network namespaces.
//!
//! `ip netns delete` removes only the name. The namespace and its devices exist as long as a
//! process holds a descriptor, as this process does. Such a device is no longer reachable by name.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

use crate::namespace::DIRECTORY;

/// Buffer size in bytes for inotify events, whose contents are ignored.
const EVENT_BYTES: usize = 4096;

/// Log message if no inotify watch can be created.
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

    /// Watches the directory of names, which exists once there is a named namespace. Call it again
    /// after the directory may have been created or replaced; otherwise a repeated call has no
    /// effect.
    pub(crate) fn watch(&self) {
        let changes = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO;
        if let Err(errno) = inotify::add_watch(&self.0, DIRECTORY, changes) {
            tracing::warn!(%errno, "{NO_WATCH_WARNING}");
        }
    }

    /// Discards pending events. Later events make the descriptor readable again.
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
