//! TLS relay of NBD clients over TCP.
//!
//! A worker services the queue of a connection and must not spend its time on cryptography. Each
//! connection with TLS therefore has a task between the client and the queue. A socket pair
//! connects the task and the queue.

use std::future::pending;
use std::io::{self, Cursor};
use std::net::{IpAddr, Ipv4Addr, TcpStream as StdTcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, join, split};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot::{Receiver, channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::client::Client;
use crate::negotiations::ReplacementSignal;
use crate::origin::Origin;
use crate::queue_resources::RelayOwner;
use crate::tls::NbdTls;

/// Size of the buffer per direction in bytes. No further bytes are read from one side until the
/// other side has accepted them.
const BUFFER_BYTES: usize = 64 << 10;

/// Time limit for the client to read the last replies after its queue has ended.
const LAST_REPLIES_MAX: Duration = Duration::from_secs(1);

/// Starts TLS on a client's socket. `received` contains bytes that were already received. Returns a
/// socket that carries the client's bytes without TLS. The socket is closed when TLS fails or ends.
///
/// # Errors
/// The host has no descriptor left.
pub(crate) fn start_relay(
    tls: &NbdTls,
    socket: OwnedFd,
    received: Vec<u8>,
    client: Client,
) -> io::Result<(OwnedFd, RelayOwner)> {
    let (queue_socket, relay_socket) = StdUnixStream::pair()?;
    queue_socket.set_nonblocking(true)?;
    relay_socket.set_nonblocking(true)?;
    let relay_socket = UnixStream::from_std(relay_socket)?;
    let watched = socket.try_clone()?;
    let socket = TcpStream::from_std(StdTcpStream::from(socket))?;
    let (life, mut ended) = channel();
    let acceptor = TlsAcceptor::from(tls.config());
    let evicted = client.replacement_signal.clone();
    // `client` keeps the connection counted while the task runs.
    let relay = async move {
        let session = async {
            // A client that sends nothing is not queued for a handshake.
            if received.is_empty() {
                socket.readable().await?;
            }
            let (read, write) = split(socket);
            // rustls reads at most one record, 16 KiB, at once.
            let read = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(received).chain(read));
            let handshake = acceptor.accept(join(read, write));
            let note = |is_waiting| note_waiting(&client, is_waiting);
            let limits = client.context.tls_limits.clone();
            limits.run(address_of(client.origin), watched, handshake, note).await
        };
        let session = tokio::select! {
            session = session => session,
            // The negotiation has timed out.
            _ = &mut ended => return,
        };
        let session = match session {
            Ok(session) => session,
            Err(error) => {
                if !is_of_connection(&error) {
                    client.report_access_rejection(&format!("TLS failed: {error}"));
                }
                return;
            }
        };
        if let Err(error) = carry(session, relay_socket, ended).await {
            tracing::debug!(%error, "the TLS session of an NBD client ended");
        }
        drop(client);
    };
    tokio::spawn(async move {
        tokio::select! {
            () = relay => {}
            () = wait_for_eviction(evicted) => {}
        }
    });
    Ok((queue_socket.into(), RelayOwner::new(life)))
}

/// Returns the address to which the limits on TLS handshakes apply for a client.
fn address_of(origin: Option<Origin>) -> IpAddr {
    match origin {
        Some(Origin::Address(address)) => address,
        // Clients of Unix sockets have no TLS.
        Some(Origin::User(_)) | None => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// Records in the client's negotiation whether the TLS handshake is queued, so that the client
/// waits for the server.
fn note_waiting(client: &Client, is_waiting: bool) {
    if let Some(progress) = &client.negotiation {
        progress.set_waiting_for_server(is_waiting, Instant::now());
    }
}

/// Waits until a newer negotiation replaces that of the client.
async fn wait_for_eviction(evicted: Option<ReplacementSignal>) {
    match evicted {
        Some(mut evicted) => evicted.wait().await,
        None => pending().await,
    }
}

/// Returns true for an error of the connection, false for one of the TLS negotiation. Errors of
/// system calls have an error number.
fn is_of_connection(error: &io::Error) -> bool {
    error.raw_os_error().is_some() || error.kind() == io::ErrorKind::UnexpectedEof
}

/// Transfers bytes in both directions until the queue or the connection ends.
async fn carry(
    session: impl AsyncRead + AsyncWrite,
    socket: UnixStream,
    ended: Receiver<()>,
) -> io::Result<()> {
    let (from_client, to_client) = split(session);
    let (from_queue, to_queue) = socket.into_split();
    let mut replies = pin!(pump(from_queue, to_client));
    let requests = async {
        // The queue detects the end of its socket and ends. The replies end with it.
        pump(from_client, to_queue).await?;
        pending::<io::Result<()>>().await
    };
    tokio::select! {
        result = &mut replies => result,
        result = requests => result,
        _ = ended => timeout(LAST_REPLIES_MAX, replies).await?,
    }
}

/// Transfers bytes until the end of `from`, and then ends `to`.
async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(buffer.get(..count).unwrap_or_default()).await?;
        to.flush().await?;
    }
}
