//! NBD handshake with a server.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use suimon_nbd::{ClientHandshake, ClientStep, RemoteExport, TransmissionFlags};
use suimon_ports::DISK_CLIENT_REQUEST_BYTES_MAX;

/// Time limit for the handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Flags that an export must have to be written, each with a description for errors.
const REQUIRED_FLAGS: [(TransmissionFlags, &str); 2] = [
    (TransmissionFlags::SEND_FLUSH, "make writes durable (NBD_CMD_FLUSH)"),
    (TransmissionFlags::SEND_WRITE_ZEROES, "write zeroes (NBD_CMD_WRITE_ZEROES)"),
];

/// Negotiates the export `name`; `writes` is true if it must be writable. Returns the export, and
/// bytes that were received after the handshake.
pub(crate) fn negotiate_export(
    socket: &OwnedFd,
    name: &str,
    writes: bool,
) -> io::Result<(RemoteExport, Vec<u8>)> {
    let deadline = Instant::now() + HANDSHAKE_MAX;
    let mut handshake = ClientHandshake::new(name).map_err(io::Error::other)?;
    let (mut output, mut unparsed) = (Vec::new(), Vec::new());
    let export = loop {
        let progress = handshake.handle_bytes(&unparsed, &mut output).map_err(io::Error::other)?;
        unparsed.drain(..progress.consumed.min(unparsed.len()));
        send_all(socket, &output, deadline)?;
        output.clear();
        match progress.step {
            ClientStep::Continue => {}
            ClientStep::NeedsBytes => receive(socket, &mut unparsed, deadline)?,
            ClientStep::Negotiated(export) => break export,
        }
    };
    check(&export, writes)?;
    set_socket_timeout(socket, Timeout::Send, None)?;
    set_socket_timeout(socket, Timeout::Recv, None)?;
    Ok((export, unparsed))
}

/// Checks that the export has the required features.
fn check(export: &RemoteExport, writes: bool) -> io::Result<()> {
    let payload_max = u64::from(export.block_sizes.payload_max);
    if payload_max < DISK_CLIENT_REQUEST_BYTES_MAX {
        let text = format!(
            "the server accepts {payload_max} bytes per request, but {DISK_CLIENT_REQUEST_BYTES_MAX} are \
             required"
        );
        return Err(io::Error::other(text));
    }
    if writes && export.flags.has(TransmissionFlags::READ_ONLY) {
        return Err(io::Error::other("the server exports the disk read-only"));
    }
    let missing = REQUIRED_FLAGS.iter().find(|(flag, _)| writes && !export.flags.has(*flag));
    match missing {
        Some((_, operation)) => Err(io::Error::other(format!("the server cannot {operation}"))),
        None => Ok(()),
    }
}

fn remaining(deadline: Instant) -> io::Result<Duration> {
    let remaining =
        deadline.checked_duration_since(Instant::now()).filter(|remaining| !remaining.is_zero());
    remaining.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

fn send_all(socket: &OwnedFd, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        set_socket_timeout(socket, Timeout::Send, Some(remaining(deadline)?))?;
        match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            // The remaining time is recomputed.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Appends received bytes to `bytes`; at least one.
///
/// # Errors
/// The server closed the connection, or sent nothing until `deadline`.
fn receive(socket: &OwnedFd, bytes: &mut Vec<u8>, deadline: Instant) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        set_socket_timeout(socket, Timeout::Recv, Some(remaining(deadline)?))?;
        match recv(socket, &mut buffer, RecvFlags::empty()) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => {
                bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
                return Ok(());
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
