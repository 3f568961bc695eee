//! What can go wrong between a client and the daemon.

use std::io;
use std::path::PathBuf;

use suimon_contract::{ApiError, ErrorCode};
use thiserror::Error;

/// Why a request has no result.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nobody answers on the socket.
    #[error("cannot reach the daemon at {}: {source}; {}", socket.display(), unreachable_hint(source))]
    Unreachable {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No TLS connection to it comes about.
    #[error("cannot reach {address}: {reason}")]
    NotConnected {
        /// Its address.
        address: String,
        /// Why not, and what can be done.
        reason: String,
    },
    /// The daemon refused or failed; it says why.
    #[error("{}", first(errors))]
    Refused {
        /// HTTP status.
        status: u16,
        /// What is wrong; never empty.
        errors: Vec<ApiError>,
    },
    /// The connection broke, or did not carry HTTP.
    #[error("the connection to the daemon broke: {0}; see the daemon's log for a reason")]
    Broken(String),
    /// The answer is not what this endpoint gives.
    #[error(
        "the daemon's answer to {path} is not understood: {reason}; \
         are the daemon and this program of one version?"
    )]
    NotUnderstood {
        /// What was asked.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The daemon took the request and did not answer in time.
    #[error("the daemon did not answer {path} within {timeout_s} s; is the host overloaded?")]
    TimedOut {
        /// What was asked.
        path: String,
        /// How long was waited, in s.
        timeout_s: u64,
    },
}

impl ClientError {
    /// The daemon's errors, if it gave any.
    pub fn api_errors(&self) -> &[ApiError] {
        match self {
            Self::Refused { errors, .. } => errors,
            _ => &[],
        }
    }

    /// Whether the daemon said that there is no such resource.
    pub fn is_not_found(&self) -> bool {
        self.api_errors().first().is_some_and(|error| error.code == ErrorCode::NotFound)
    }
}

fn first(errors: &[ApiError]) -> String {
    let Some(first) = errors.first() else { return "refused without a reason".to_owned() };
    match errors.len() {
        1 => first.to_string(),
        count => format!("{first} (and {} more)", count.saturating_sub(1)),
    }
}

fn unreachable_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => {
            "is suimond running, and with this socket? Name another with --socket or SUIMON_SOCKET"
        }
        io::ErrorKind::ConnectionRefused => {
            "a socket is there but nobody listens: suimond has ended; start it again"
        }
        io::ErrorKind::PermissionDenied => {
            "you may not open it; run as root or join the group that owns the socket"
        }
        _ => "is suimond running?",
    }
}
