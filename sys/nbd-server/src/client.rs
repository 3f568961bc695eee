//! A client that has connected and is not served yet.

use std::io;
use std::os::fd::OwnedFd;

use suimon_socket_runtime::blocking;

use crate::clients::{Caller, Noted};
use crate::handshake::{Admitted, shake_hands};
use crate::queue::NbdQueue;
use crate::relay::QueueLife;
use crate::server::NbdHost;
use crate::ticket::Ticket;
use crate::tls::NbdTls;

/// A connected client and the server that it has connected to.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) host: NbdHost,
    /// `None` if the server offers no TLS.
    pub(crate) tls: Option<NbdTls>,
    pub(crate) caller: Caller,
}

/// Owned by the queue of a connection as long as it exists.
pub(crate) struct Inside {
    _ticket: Option<Ticket>,
    _noted: Option<Noted>,
    _life: Option<QueueLife>,
}

/// Whether a connection counts as one of its server.
pub(crate) enum Counting {
    /// It is one of [`CONNECTIONS_MAX`](crate::CONNECTIONS_MAX), and is listed.
    Counted(Ticket),
    /// It is neither limited nor listed: the daemon itself has made it.
    Uncounted,
}

impl Client {
    /// Reports that the client was refused. Clients decide how often that is: the log has a line
    /// for each at level debug only.
    pub(crate) fn refuse(&self, reason: &str) {
        let peer = self.caller.peer.clone();
        tracing::debug!(peer, reason, "an NBD client is refused");
        self.host.exports.handle_refused(peer, reason.to_owned());
    }

    /// Negotiates with the client and gives its queue to the export that it chose.
    ///
    /// # Errors
    /// The negotiation failed, the host cannot serve the connection, or the export refuses it.
    pub(crate) async fn admit(self, socket: OwnedFd, counting: Counting) -> io::Result<()> {
        let Some(admitted) = shake_hands(socket, &self).await? else { return Ok(()) };
        // The export may wait for the worker of its disk.
        blocking(move || self.attach(admitted, counting)).await.map_err(io::Error::other)?
    }

    fn attach(&self, admitted: Admitted, counting: Counting) -> io::Result<()> {
        let Admitted { socket, negotiated, rest, life } = admitted;
        let name = negotiated.export.name().to_owned();
        let (ticket, noted) = match counting {
            Counting::Counted(ticket) => {
                (Some(ticket), Some(self.host.clients.note(&name, &self.caller)))
            }
            Counting::Uncounted => (None, None),
        };
        let inside = Inside { _ticket: ticket, _noted: noted, _life: life };
        // The host lacks descriptors or memory: the operator is informed, others are served.
        let queue = NbdQueue::new(socket, &negotiated, rest).inspect_err(|error| {
            self.refuse(&format!("the host cannot serve its connection: {error}"));
        })?;
        self.host.exports.attach(&name, queue.counted_by(inside)).map_err(io::Error::other)
    }
}
