//! HTTP server of the daemon: the REST API on a Unix socket and, if configured, on TCP with TLS and
//! a token; the web console with its sessions.
//!
//! Handlers only translate between HTTP and the node, which manages desired state, its changes and
//! events.
//!
//! - [`router`] is the API as a service, with [`ApiState`]; [`openapi_document`] describes it.
//! - [`TcpApi`] is the TCP listener, [`with_token_check`] restricts a service to requests with a
//!   token, and [`AccessFailures`] records wrong credentials.
//! - [`Console`] is the listener of the console with its logins; [`console_router`] is its service.
//! - [`ListenerStarter`] starts the TCP listeners, and tries again after failures.
//! - [`serve`] accepts connections of a [`Listener`] until [`Notifications`] report the end.
//!
//! Outside of the scope: the file of the Unix socket, signals, and the lifecycle of the process.
//!
//! Invariants
//! - No handler blocks a thread of the async runtime. Calls to the host run on threads for blocking
//!   calls.
//! - Every unsuccessful response carries an `ErrorBody`.
//! - A TCP listener requires TLS and a token, except that of the console, which is bound to
//!   loopback and serves logged-in users only.
#![forbid(unsafe_code)]

mod access;
mod api;
pub mod byte_relay;
mod console;
pub mod host_file;
mod http;
mod listeners;
mod notifications;
mod pcapng;
mod remedy;
mod server;
mod tcp_api;

pub use access::AccessFailures;
pub use api::{ApiState, openapi_document, router};
pub use console::{Console, ConsoleInService, LIVE_STREAMS_MAX, router as console_router};
pub use listeners::{ListenerSection, ListenerSettings, ListenerSettingsRecord, ListenerStarter};
pub use notifications::{EVENT_FOLLOWERS_MAX, NotificationSender, Notifications};
pub use server::{
    CONNECTIONS_MAX, Listener, REQUEST_HEAD_TIMEOUT, TlsListener, UPGRADED_CONNECTIONS_MAX,
    WRITE_TIMEOUT, serve,
};
pub use tcp_api::{TcpApi, Tokens, with_token_check};
