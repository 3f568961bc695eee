//! A client's handshake, on a thread that may wait.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use suimon_nbd::{GREETING, Handshake, Negotiated, Step, TlsMode};

use crate::relay::start_relay;
use crate::server::Welcome;

/// How long a client may take to say what it wants, TLS included.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// A client that has come in.
pub(crate) struct Welcomed {
    /// What it says from now on, without TLS.
    pub(crate) socket: OwnedFd,
    pub(crate) negotiated: Negotiated,
    /// What was read behind the handshake.
    pub(crate) rest: Vec<u8>,
}

/// `None`: the client wanted nothing more. Where there is TLS nothing is answered before TLS.
pub(crate) fn shake_hands(mut socket: OwnedFd, welcome: &Welcome) -> io::Result<Option<Welcomed>> {
    let deadline = Instant::now() + HANDSHAKE_MAX;
    let exports = welcome.host.exports.exports();
    let tls = welcome.tls.as_ref();
    let mode = if tls.is_some() { TlsMode::Required } else { TlsMode::Off };
    let mut handshake = Handshake::new(mode);
    let (mut output, mut rest) = (GREETING.to_vec(), Vec::new());
    loop {
        send_all(&socket, &output, deadline)?;
        output.clear();
        let progress = match handshake.handle_bytes(exports.as_slice(), &rest, &mut output) {
            Ok(progress) => progress,
            Err(error) => {
                let _ = send_all(&socket, &output, deadline);
                return Err(io::Error::other(error.to_string()));
            }
        };
        rest.drain(..progress.consumed.min(rest.len()));
        match progress.step {
            Step::NeedsBytes => {
                if !receive(&socket, &mut rest, deadline)? {
                    return Ok(None);
                }
            }
            Step::Answered | Step::Refused(_) => {}
            Step::StartTls => {
                send_all(&socket, &output, deadline)?;
                output.clear();
                let tls = tls.ok_or_else(|| io::Error::other("TLS is off"))?;
                socket = start_relay(tls, socket, std::mem::take(&mut rest), welcome)?;
                handshake.handle_tls_started().map_err(io::Error::other)?;
            }
            Step::Aborted => {
                send_all(&socket, &output, deadline)?;
                return Ok(None);
            }
            Step::Negotiated(negotiated) => {
                send_all(&socket, &output, deadline)?;
                return Ok(Some(Welcomed { socket, negotiated: *negotiated, rest }));
            }
        }
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    left.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

fn send_all(socket: &OwnedFd, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        set_socket_timeout(socket, Timeout::Send, Some(left(deadline)?))?;
        match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            // What is left is looked at again.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Appends what comes; `false` if nothing will any more.
fn receive(socket: &OwnedFd, bytes: &mut Vec<u8>, deadline: Instant) -> io::Result<bool> {
    let mut more = [0; 4096];
    loop {
        set_socket_timeout(socket, Timeout::Recv, Some(left(deadline)?))?;
        match recv(socket, &mut more, RecvFlags::empty()) {
            Ok((got, _)) => {
                bytes.extend_from_slice(more.get(..got).unwrap_or_default());
                return Ok(got > 0);
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
