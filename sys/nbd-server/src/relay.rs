//! Carries the TLS of NBD clients over TCP.
//!
//! A connection's queue is driven by a processor, which must not spend its time on
//! cryptography. So each connection with TLS has a thread that stands between the client
//! and the queue, to which it speaks over a pair of sockets.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustls::ServerConnection;

use crate::server::Welcome;
use crate::tls::NbdTls;

/// Bytes that are taken from either side at once.
const PIECE_BYTES: usize = 64 << 10;

/// Starts TLS on a client's socket, of which `rest` was read already. What comes back is a
/// socket on which the client speaks without TLS; it ends when TLS fails or ends, and
/// closing it ends the connection.
pub(crate) fn start_relay(
    tls: &NbdTls,
    socket: OwnedFd,
    rest: Vec<u8>,
    welcome: &Welcome,
) -> io::Result<OwnedFd> {
    let mut session = ServerConnection::new(tls.config()).map_err(io::Error::other)?;
    // No more than a piece is handed over before all of it was sent.
    session.set_buffer_limit(None);
    let socket = TcpStream::from(socket);
    socket.set_nonblocking(true)?;
    let (ours, inside) = UnixStream::pair()?;
    inside.set_nonblocking(true)?;
    let mut relay = Relay { session, socket, inside, plain: Vec::new(), is_over: false };
    let welcome = welcome.clone();
    std::thread::Builder::new().name("nbd-tls".to_owned()).spawn(move || {
        if (welcome.host.on_client_start)().is_err() {
            return;
        }
        if let Err(error) = relay.run(&rest) {
            tracing::debug!(%error, "the TLS of an NBD client ended");
            if relay.session.is_handshaking() && !is_of_system(&error) {
                welcome.refuse(&format!("TLS failed: {error}"));
            }
        }
    })?;
    Ok(ours.into())
}

/// Between a client's socket and its queue.
struct Relay {
    session: ServerConnection,
    socket: TcpStream,
    inside: UnixStream,
    /// What the client said and the queue has not taken.
    plain: Vec<u8>,
    /// The client says nothing more.
    is_over: bool,
}

impl Relay {
    fn run(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            self.session.read_tls(&mut rest)?;
            self.process()?;
        }
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            self.hand_in()?;
            self.send()?;
            if self.is_over && self.plain.is_empty() {
                return Ok(());
            }
            if !self.wait()? {
                return Ok(());
            }
            // Each side is read only when the other has taken what came before, so that
            // neither makes this one keep more than a piece.
            if self.plain.is_empty() && !self.is_over {
                self.take_from_client(&mut piece)?;
            }
            if !self.session.wants_write() && !self.session.is_handshaking() {
                match self.inside.read(&mut piece) {
                    Ok(0) => {
                        self.session.send_close_notify();
                        return self.send();
                    }
                    Ok(got) => {
                        self.session.writer().write_all(piece.get(..got).unwrap_or_default())?;
                    }
                    Err(error) if is_for_later(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// Sleeps until either side has something, or takes something. `false`: the client's
    /// socket has failed, or the queue is closed, while nothing is read of it.
    fn wait(&self) -> io::Result<bool> {
        let mut of_client = PollFlags::empty();
        of_client.set(PollFlags::IN, self.plain.is_empty() && !self.is_over);
        of_client.set(PollFlags::OUT, self.session.wants_write());
        let mut of_inside = PollFlags::empty();
        let may_take = !self.session.wants_write() && !self.session.is_handshaking();
        of_inside.set(PollFlags::IN, may_take);
        of_inside.set(PollFlags::OUT, !self.plain.is_empty());
        let mut both = [PollFd::new(&self.socket, of_client), PollFd::new(&self.inside, of_inside)];
        match poll(&mut both, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
        let has_ended = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        let is_read = [of_client, of_inside].map(|flags| flags.contains(PollFlags::IN));
        Ok(!both.iter().zip(is_read).any(|(fd, is_read)| !is_read && has_ended(fd)))
    }

    fn take_from_client(&mut self, piece: &mut [u8]) -> io::Result<()> {
        let got = match self.socket.read(piece) {
            Ok(0) => {
                self.is_over = true;
                return Ok(());
            }
            Ok(got) => got,
            Err(error) if is_for_later(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut rest: &[u8] = piece.get(..got).unwrap_or_default();
        while !rest.is_empty() {
            self.session.read_tls(&mut rest)?;
            self.process()?;
        }
        Ok(())
    }

    /// Decrypts what has come.
    fn process(&mut self) -> io::Result<()> {
        let state = match self.session.process_new_packets() {
            Ok(state) => state,
            Err(error) => {
                // The client is told why.
                let _ = self.send();
                return Err(io::Error::other(error));
            }
        };
        let before = self.plain.len();
        self.plain.resize(before.saturating_add(state.plaintext_bytes_to_read()), 0);
        self.session.reader().read_exact(self.plain.get_mut(before..).unwrap_or_default())?;
        self.is_over |= state.peer_has_closed();
        Ok(())
    }

    /// Hands the queue what the client said, as far as it takes it.
    fn hand_in(&mut self) -> io::Result<()> {
        while !self.plain.is_empty() {
            match self.inside.write(&self.plain) {
                Ok(taken) => drop(self.plain.drain(..taken)),
                Err(error) if is_for_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends what is encrypted, as far as the socket takes it.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if is_for_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether it is the connection that failed, and not what was said on it.
fn is_of_system(error: &io::Error) -> bool {
    error.raw_os_error().is_some()
}
