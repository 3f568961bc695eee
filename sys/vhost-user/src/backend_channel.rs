//! Channel on which the back-end sends requests to the front-end (`VHOST_USER_SET_BACKEND_REQ_FD`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{SendFlags, send};

use crate::message::{HEADER_BYTES, VERSION};
use crate::received_descriptors::is_unix_socket;

/// Code of `VHOST_USER_BACKEND_CONFIG_CHANGE_MSG`.
const CONFIG_CHANGE: u32 = 2;

/// Socket for requests of the back-end. The requests need no reply and are sent without blocking,
/// so that a front-end that does not read never delays the device.
#[derive(Debug)]
pub(crate) struct BackendChannel {
    socket: OwnedFd,
}

impl BackendChannel {
    /// Takes ownership of the descriptor that the front-end passed.
    ///
    /// # Errors
    /// The reason why the descriptor cannot be used, for example that it is not a socket.
    pub(crate) fn new(socket: OwnedFd) -> Result<Self, String> {
        if !is_unix_socket(socket.as_fd()) {
            return Err("the descriptor is not a Unix socket".to_owned());
        }
        Ok(Self { socket })
    }

    /// Notifies the front-end that configuration space changed, so that a front-end with a cached
    /// copy reads it again. Does not block.
    ///
    /// # Errors
    /// The front-end has closed the channel or does not read it.
    pub(crate) fn notify_config_changed(&self) -> io::Result<()> {
        let mut bytes = [0; HEADER_BYTES];
        let words = [CONFIG_CHANGE, VERSION, 0].map(u32::to_ne_bytes);
        for (to, from) in bytes.iter_mut().zip(words.as_flattened()) {
            *to = *from;
        }
        // A message of 12 bytes is sent completely or not at all.
        send(&self.socket, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        Ok(())
    }
}
