//! Detection of sent data that a client has not read.

use core::ffi::c_int;
use std::os::fd::OwnedFd;

use rustix::net::AddressFamily;

/// `TIOCOUTQ`, which is `SIOCOUTQ` for sockets (`asm-generic/ioctls.h`).
const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;

/// Returns true if the socket reports whether the peer has read the data, which Unix sockets do. A
/// TCP socket only reports that the data arrived at the peer's host.
pub(crate) fn reports_unread_data(socket: &OwnedFd) -> bool {
    rustix::net::sockopt::socket_domain(socket).is_ok_and(|family| family == AddressFamily::UNIX)
}

/// Returns true if the peer has not read all sent data.
#[allow(unsafe_code, reason = "asks the kernel of a socket")]
pub(crate) fn has_unread_data(socket: &OwnedFd) -> bool {
    // SAFETY: this request writes one `int`.
    let query = unsafe { rustix::ioctl::Getter::<SIOCOUTQ, c_int>::new() };
    // SAFETY: the descriptor is a socket, for which the request is defined, and the request changes
    // nothing.
    let bytes = unsafe { rustix::ioctl::ioctl(socket, query) };
    bytes.is_ok_and(|bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn sent_data_is_unread_until_all_of_it_is_read() {
        let (socket, mut peer) = UnixStream::pair().unwrap();
        let mut sender = socket.try_clone().unwrap();
        let socket = OwnedFd::from(socket);
        assert!(reports_unread_data(&socket) && !has_unread_data(&socket));
        sender.write_all(&[7; 10_000]).unwrap();
        peer.read_exact(&mut [0; 9_999]).unwrap();
        assert!(has_unread_data(&socket));
        peer.read_exact(&mut [0]).unwrap();
        assert!(!has_unread_data(&socket));
    }

    #[test]
    fn tcp_does_not_report_unread_data() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!reports_unread_data(&OwnedFd::from(stream)));
    }
}
