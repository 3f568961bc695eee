//! Network namespaces, and execution of work in them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustix::fs::{Mode, OFlags, fstat, stat};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use suimon_ports::{DeviceError, DeviceErrorKind};

use crate::errors::{device_error, host_error};

/// Directory in which `ip netns` keeps namespaces.
pub(crate) const DIRECTORY: &str = "/run/netns";
/// Path of this process's namespace.
pub(crate) const DAEMON_NETNS: &str = "/proc/self/ns/net";

/// Identity of a namespace (device and inode number), unique while the namespace exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamespaceId {
    device: u64,
    inode: u64,
}

/// Network namespace, held open.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    id: NamespaceId,
    name: Option<Arc<str>>,
    /// Descriptor of the namespace; `None` for this process's namespace.
    fd: Option<Arc<OwnedFd>>,
}

impl Namespace {
    /// Opens the namespace of this name, or this process's namespace if `None`.
    ///
    /// # Errors
    /// The name is not valid for `ip netns`, the namespace does not exist, or it cannot be opened.
    pub(crate) fn open(name: Option<&str>) -> Result<Self, DeviceError> {
        let daemon_id = open_with_id(Path::new(DAEMON_NETNS))
            .map_err(|cause| host_error("netns", DAEMON_NETNS, &cause))?
            .0;
        let Some(name) = name else { return Ok(Self { id: daemon_id, name: None, fd: None }) };
        if name.is_empty()
            || name.len() > 255
            || name.starts_with('.')
            || name.contains(['/', '\0'])
        {
            let detail = format!(
                "`{}` is not a valid name of a network namespace; use a name that `ip netns list` \
                 shows",
                name.escape_default()
            );
            return Err(device_error(DeviceErrorKind::Missing, "netns", detail));
        }
        let (id, fd) = open_with_id(&Path::new(DIRECTORY).join(name)).map_err(|cause| {
            if cause.kind() == io::ErrorKind::NotFound {
                let detail = format!(
                    "network namespace {name} does not exist; create it with `ip netns add \
                     {name}`{}",
                    existing()
                );
                device_error(DeviceErrorKind::Missing, "netns", detail)
            } else {
                host_error("netns", &format!("opening network namespace {name}"), &cause)
            }
        })?;
        Ok(Self { id, name: Some(name.into()), fd: (id != daemon_id).then(|| Arc::new(fd)) })
    }

    /// Returns the identity of the namespace.
    pub(crate) fn id(&self) -> NamespaceId {
        self.id
    }

    /// Returns the name by which the namespace was opened; `None` for this process's namespace.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// Returns true if it is this process's namespace.
    pub(crate) fn is_daemon_netns(&self) -> bool {
        self.fd.is_none()
    }

    /// Returns true if the name currently refers to the namespace `id`, or if that cannot be
    /// determined.
    pub(crate) fn is_named(id: NamespaceId, name: &str) -> bool {
        match stat(Path::new(DIRECTORY).join(name)) {
            Ok(stat) => id == NamespaceId { device: stat.st_dev, inode: stat.st_ino },
            // Other errors do not prove that the name was removed.
            Err(errno) => !matches!(errno, Errno::NOENT | Errno::NOTDIR),
        }
    }

    /// Executes `work` in this namespace. For another namespace, `work` runs on a new thread,
    /// because a thread that changed its namespace must not be used for other work. Blocks until
    /// `work` ends.
    ///
    /// # Errors
    /// The error of `work`, or the namespace could not be entered.
    pub(crate) fn run<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, DeviceError> + Send,
    ) -> Result<T, DeviceError> {
        let Some(fd) = &self.fd else { return work() };
        let entered = || {
            move_into_link_name_space(fd.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
                |errno| match errno {
                    Errno::INVAL => device_error(
                        DeviceErrorKind::Missing,
                        "netns",
                        "the file under /run/netns is not a network namespace, perhaps a \
                         remainder from before a reboot; delete it with `ip netns delete` and \
                         create it again",
                    ),
                    errno => host_error("netns", "entering the network namespace", &errno.into()),
                },
            )?;
            work()
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .name("netns".to_owned())
                .spawn_scoped(scope, entered)
                .map_err(|cause| host_error("netns", "starting a thread", &cause))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

fn open_with_id(path: &Path) -> io::Result<(NamespaceId, OwnedFd)> {
    let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&fd)?;
    Ok((NamespaceId { device: stat.st_dev, inode: stat.st_ino }, fd))
}

/// Returns a text like `; there are: a, b` for errors, with a few names, to reveal a misspelling.
fn existing() -> String {
    let names = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        names.take(64).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names.truncate(8);
    if names.is_empty() {
        String::new()
    } else {
        format!("; existing namespaces: {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestNetns;

    #[test]
    fn work_runs_inside_and_the_caller_stays_where_it_was() {
        let netns = TestNetns::new();
        let namespace = Namespace::open(Some(netns.name())).unwrap();
        let link = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
        let daemon_link = link();
        let namespace_link = namespace.run(|| Ok(link())).unwrap();
        assert_ne!(daemon_link, namespace_link);
        assert_eq!(link(), daemon_link);
        assert_ne!(namespace.id(), Namespace::open(None).unwrap().id());
        assert_eq!(Namespace::open(Some(netns.name())).unwrap().id(), namespace.id());
    }

    #[test]
    fn missing_and_impossible_namespaces_are_named() {
        let netns = TestNetns::new();
        for (name, parts) in [
            ("suimon-none", &["suimon-none", "ip netns add"][..]),
            ("../../proc/self/ns/net", &["not a valid name"]),
            ("", &["not a valid name"]),
            (".", &["not a valid name"]),
        ] {
            let error = Namespace::open(Some(name)).unwrap_err();
            assert_eq!((error.kind, error.field), (DeviceErrorKind::Missing, "netns"));
            assert!(parts.iter().all(|part| error.detail.contains(part)), "{}", error.detail);
        }
        drop(netns);
    }
}
