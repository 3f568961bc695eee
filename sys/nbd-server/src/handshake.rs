//! Negotiation with a client (NBD protocol, "Handshake phase").

use std::io::{self, IoSliceMut};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use suimon_nbd::{
    GREETING, NegotiatedParameters, ServerHandshake as Negotiation, ServerStep, TlsMode,
};
use suimon_socket_runtime::{DescriptorGuard, WatchedFd};
use tokio::time::timeout;

use crate::client::Client;
use crate::negotiations::NegotiationEntry;
use crate::queue_resources::RelayOwner;
use crate::relay::start_relay;
use crate::tls::NbdTls;

/// Time limit of a negotiation, including TLS.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Client after a completed negotiation.
pub(crate) struct NegotiatedConnection {
    /// Socket that carries the client's bytes: the client's own, or that of the TLS relay.
    pub(crate) socket: OwnedFd,
    pub(crate) negotiated: NegotiatedParameters,
    /// Bytes that the client sent after the negotiation, already received.
    pub(crate) unparsed: Vec<u8>,
    /// Owner of the connection's TLS relay, which ends when this is dropped; `None` without TLS.
    pub(crate) relay: Option<RelayOwner>,
}

/// Negotiates with a client. Returns `None` if the client ended the negotiation. If TLS is
/// required, only a request for TLS is accepted before it is established.
///
/// # Errors
/// The client violated the protocol, exceeded [`HANDSHAKE_MAX`] or a limit on connections, or the
/// socket failed.
pub(crate) async fn negotiate_connection(
    socket: OwnedFd,
    client: &Client,
    slot: Option<&NegotiationEntry>,
) -> io::Result<Option<NegotiatedConnection>> {
    let negotiation = timeout(HANDSHAKE_MAX, negotiate(socket, client, slot));
    negotiation.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn negotiate(
    socket: OwnedFd,
    client: &Client,
    slot: Option<&NegotiationEntry>,
) -> io::Result<Option<NegotiatedConnection>> {
    let exports = client.context.exports.exports();
    let tls = client.tls.as_ref();
    let mode = if tls.is_some() { TlsMode::Required } else { TlsMode::Off };
    let mut handshake = Negotiation::new(mode);
    let mut socket = WatchedFd::new(socket)?;
    let mut life = None;
    let (mut output, mut unparsed) = (GREETING.to_vec(), Vec::new());
    loop {
        send_all(&socket, &output).await?;
        output.clear();
        let progress = match handshake.handle_bytes(exports.as_slice(), &unparsed, &mut output) {
            Ok(progress) => progress,
            Err(error) => {
                let _ = send_all(&socket, &output).await;
                return Err(io::Error::other(error.to_string()));
            }
        };
        unparsed.drain(..progress.consumed.min(unparsed.len()));
        match progress.step {
            ServerStep::NeedsBytes => {
                if !receive(&socket, &mut unparsed, client.guard.as_deref()).await? {
                    return Ok(None);
                }
                if let Some(slot) = slot {
                    slot.handle_bytes(Instant::now());
                }
                // No option is received through TLS before the client's certificate was verified.
                let is_shown = life.is_some() && tls.is_some_and(NbdTls::requires_certificates);
                if let Some(slot) = slot.filter(|_| is_shown) {
                    slot.handle_authenticated();
                }
            }
            ServerStep::OptionAcknowledged | ServerStep::OptionRejected(_) => {}
            ServerStep::StartTls => {
                send_all(&socket, &output).await?;
                output.clear();
                let tls = tls.ok_or_else(|| io::Error::other("TLS is not configured"))?;
                let received = std::mem::take(&mut unparsed);
                let (relay_socket, of_relay) =
                    start_relay(tls, socket.into_fd()?, received, client.clone())?;
                (socket, life) = (WatchedFd::new(relay_socket)?, Some(of_relay));
                handshake.handle_tls_started().map_err(io::Error::other)?;
            }
            ServerStep::Aborted => {
                send_all(&socket, &output).await?;
                return Ok(None);
            }
            ServerStep::Negotiated(negotiated) => {
                client.open_account(negotiated.export.name())?;
                send_all(&socket, &output).await?;
                let socket = socket.into_fd()?;
                return Ok(Some(NegotiatedConnection {
                    socket,
                    negotiated: *negotiated,
                    unparsed,
                    relay: life,
                }));
            }
        }
    }
}

async fn send_all(socket: &WatchedFd, mut bytes: &[u8]) -> io::Result<()> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    while !bytes.is_empty() {
        let sent = socket.write(|socket| Ok(send(socket, bytes, flags)?)).await?;
        bytes = bytes.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// Appends received bytes to `bytes`. Returns false at the end of the connection.
async fn receive(
    socket: &WatchedFd,
    bytes: &mut Vec<u8>,
    guard: Option<&DescriptorGuard>,
) -> io::Result<bool> {
    let mut buffer = [0; 4096];
    let read = |socket: BorrowedFd<'_>| match guard {
        Some(guard) => guard.receive(socket, &mut [IoSliceMut::new(&mut buffer)]),
        None => Ok(recv(socket, &mut buffer, RecvFlags::DONTWAIT)?.0),
    };
    let count = socket.read(read).await?;
    bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
    Ok(count > 0)
}
