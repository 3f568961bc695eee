//! Client of the launcher, used by the daemon.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use suimon_ports::{VmError, VmErrorKind, VmIdentity};

use crate::messages::{connect_to, receive_message, send_message, wait_readable};
use crate::wire::{Envelope, PROTOCOL, ProcessEnd, Reply, Request};

/// Time limit for a reply of the launcher. Probing KVM, allocating memory and killing a process
/// take some seconds each.
const LIMIT: Duration = Duration::from_secs(30);

/// Client of the launcher, by the path of its socket. Each request uses a separate connection.
#[derive(Clone, Debug)]
pub(crate) struct LauncherClient {
    socket: PathBuf,
}

fn connection_lost(path: &Path, error: &io::Error) -> VmError {
    let path = path.display();
    let hint = "restart the daemon, which starts the launcher, or run `suimond --vm-launcher`";
    let text = format!("the VM launcher does not respond at {path} ({error}): {hint}");
    VmError::new(VmErrorKind::Host, text)
}

fn unexpected_reply() -> VmError {
    let text = "the VM launcher sent an unexpected reply, perhaps because it has another version; \
                stop it (VMs keep running) and restart the daemon";
    VmError::new(VmErrorKind::Host, text)
}

impl LauncherClient {
    pub(crate) fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Connects to the launcher. A launcher that exits when it is not needed keeps running while
    /// the connection is open.
    pub(crate) fn connect(&self) -> Result<OwnedFd, VmError> {
        connect_to(&self.socket).map_err(|error| connection_lost(&self.socket, &error))
    }

    fn send(&self, request: Request) -> Result<OwnedFd, VmError> {
        let connection = self.connect()?;
        let envelope = Envelope { protocol: PROTOCOL, request };
        send_message(&connection, &envelope)
            .map_err(|error| connection_lost(&self.socket, &error))?;
        Ok(connection)
    }

    /// Sends a request and blocks until the launcher replies, at most 30 s.
    ///
    /// # Errors
    /// The launcher does not reply, or rejects the request.
    pub(crate) fn request(&self, request: Request) -> Result<Reply, VmError> {
        let connection = self.send(request)?;
        let failed = |error| connection_lost(&self.socket, &error);
        let [has_come] = wait_readable([connection.as_fd()], Some(LIMIT)).map_err(failed)?;
        if !has_come {
            let text = format!("the VM launcher has not replied for {} s", LIMIT.as_secs());
            return Err(VmError::new(VmErrorKind::Timeout, text));
        }
        let answer = receive_message(&connection).map_err(failed)?;
        match answer
            .ok_or_else(|| connection_lost(&self.socket, &io::ErrorKind::UnexpectedEof.into()))?
        {
            Reply::Refused { kind, text } => Err(VmError::new(kind, text)),
            answer => Ok(answer),
        }
    }

    /// Sends a request without a result, and blocks until it is executed.
    pub(crate) fn execute(&self, request: Request) -> Result<(), VmError> {
        match self.request(request)? {
            Reply::Done => Ok(()),
            _ => Err(unexpected_reply()),
        }
    }

    /// Starts a VM's QEMU process.
    pub(crate) fn start(
        &self,
        spec: &suimon_ports::VmSpec,
    ) -> Result<crate::wire::StartedProcess, VmError> {
        match self.request(Request::Start(Box::new(spec.clone())))? {
            Reply::Started(started) => Ok(started),
            _ => Err(unexpected_reply()),
        }
    }

    /// Returns the identities of the VMs whose process runs.
    pub(crate) fn list(&self) -> Result<Vec<VmIdentity>, VmError> {
        match self.request(Request::List)? {
            Reply::Vms(vms) => Ok(vms),
            _ => Err(unexpected_reply()),
        }
    }

    /// Opens a connection on which the launcher will report the end of a VM's process.
    pub(crate) fn watch(&self, identity: &VmIdentity) -> Result<ProcessWatch, VmError> {
        Ok(ProcessWatch { connection: self.send(Request::Watch(identity.clone()))? })
    }
}

/// Connection on which the launcher reports the end of a process.
#[derive(Debug)]
pub(crate) struct ProcessWatch {
    connection: OwnedFd,
}

/// Result of waiting for the report of a [`ProcessWatch`].
#[derive(Clone, Debug)]
pub(crate) enum LauncherEvent {
    /// The VM's process has ended.
    Ended(ProcessEnd),
    /// The connection to the launcher has ended. The process may still run.
    ConnectionEnded,
}

impl ProcessWatch {
    /// Creates a process watch from `connection`, a socket connected to the launcher.
    #[cfg(test)]
    pub(crate) fn of(connection: OwnedFd) -> Self {
        Self { connection }
    }

    pub(crate) fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        self.connection.as_fd()
    }

    /// Blocks until the launcher reports the end of the process or the connection ends, and returns
    /// which of both.
    pub(crate) fn wait(&self) -> LauncherEvent {
        match receive_message(&self.connection) {
            Ok(Some(Reply::Ended(exit))) => LauncherEvent::Ended(exit),
            _ => LauncherEvent::ConnectionEnded,
        }
    }

    /// As [`ProcessWatch::wait`], but returns `None` after `limit`.
    pub(crate) fn wait_timeout(&self, limit: Duration) -> Option<LauncherEvent> {
        match wait_readable([self.descriptor()], Some(limit)) {
            Ok([true]) => Some(self.wait()),
            _ => None,
        }
    }

    /// Requests that the launcher kill the process.
    pub(crate) fn kill(&self) {
        let _ = send_message(&self.connection, &());
    }
}
