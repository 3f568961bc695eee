//! Errors between a client and the daemon.

use std::io;
use std::path::PathBuf;

use suimon_contract::ApiError;
use thiserror::Error;

/// Reason why a request failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No process listens on the socket.
    #[error("cannot reach the daemon at {}: {source}; {}", socket.display(), unreachable_hint(source))]
    Unreachable {
        /// Path of the daemon's Unix socket.
        socket: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// No TLS connection could be established.
    #[error("cannot reach {address}: {reason}")]
    TlsConnectionFailed {
        /// Address of the daemon that the client tried to connect to.
        address: String,
        /// Reason for the failure, with the action to take.
        reason: String,
    },
    /// The daemon rejected or failed the request.
    #[error("{}", first(errors))]
    Refused {
        /// HTTP status of the response.
        status: u16,
        /// Errors that the daemon reported; never empty.
        errors: Vec<ApiError>,
    },
    /// The connection failed, or did not carry HTTP.
    #[error(
        "the connection to the daemon was lost: {0}; the log of the daemon may state the reason"
    )]
    ConnectionLost(String),
    /// The response does not match the endpoint.
    #[error(
        "the response of the daemon to {path} is invalid: {reason}; \
         check that the daemon and this program have the same version"
    )]
    InvalidResponse {
        /// Path of the request's URL.
        path: String,
        /// Reason why the response is invalid.
        reason: String,
    },
    /// The daemon accepted the request and did not respond in time.
    #[error(
        "the daemon did not respond to {path} within {timeout_s} s; check the load of the host and the \
         log of the daemon"
    )]
    TimedOut {
        /// Path of the request's URL.
        path: String,
        /// Time limit of the request in seconds.
        timeout_s: u64,
    },
}

impl ClientError {
    /// Returns the errors that the daemon reported, if any.
    pub fn api_errors(&self) -> &[ApiError] {
        match self {
            Self::Refused { errors, .. } => errors,
            _ => &[],
        }
    }
}

fn first(errors: &[ApiError]) -> String {
    let Some(first) = errors.first() else {
        return "the daemon rejected the request without a reason".to_owned();
    };
    match errors.len() {
        1 => first.to_string(),
        count => format!("{first} (and {} more)", count.saturating_sub(1)),
    }
}

fn unreachable_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => {
            "is suimond running with this socket? Give another one with --socket or SUIMON_SOCKET"
        }
        io::ErrorKind::ConnectionRefused => {
            "the socket exists but no process listens on it: suimond has ended; start it again"
        }
        io::ErrorKind::PermissionDenied => {
            "permission to open it is missing; run as root, or join the group that owns the socket"
        }
        _ => "check that suimond runs",
    }
}
