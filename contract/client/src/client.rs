//! Client of one daemon, and its options.

use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;

use crate::transport_stream::{TlsTransport, Transport};
use crate::{TlsEndpoint, TlsError};

/// Default time limit from sending a request to the head of its response, without the time for
/// which the request asks the daemon to wait.
const RESPONSE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
/// Default maximum size in bytes of a response that is not streamed.
const ANSWER_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// Client of one daemon. Holds no connection. Every request fails with
/// [`ClientError`](crate::ClientError).
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) transport: Transport,
    pub(crate) response_timeout: Duration,
    pub(crate) response_bytes_max: usize,
}

impl Client {
    /// Creates a client of the daemon that listens on this Unix socket. Does not connect.
    pub fn unix(socket: impl Into<PathBuf>) -> Self {
        Self::over(Transport::Unix(socket.into()))
    }

    /// Creates a client of a daemon that is reached over TCP with TLS. Reads the certificate and
    /// token files but does not connect.
    ///
    /// # Errors
    /// A file cannot be used, or the server name is invalid.
    pub fn tls(reach: &TlsEndpoint) -> Result<Self, TlsError> {
        let transport = Transport::Tls(Arc::new(TlsTransport::new(reach)?));
        Ok(Self::over(transport))
    }

    const fn over(transport: Transport) -> Self {
        Self {
            transport,
            response_timeout: RESPONSE_TIMEOUT_DEFAULT,
            response_bytes_max: ANSWER_BYTES_MAX_DEFAULT,
        }
    }

    /// Sets the time limit for responses, in addition to the time that a request asks the daemon to
    /// wait. The default is 60 s.
    #[must_use]
    pub fn with_response_timeout(mut self, answer_time: Duration) -> Self {
        self.response_timeout = answer_time;
        self
    }

    /// Sets the maximum size in bytes of a response that is not streamed. The default is 64 MiB.
    #[must_use]
    pub fn with_response_bytes_max(mut self, answer_bytes_max: usize) -> Self {
        self.response_bytes_max = answer_bytes_max;
        self
    }
}
