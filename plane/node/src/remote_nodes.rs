//! Other nodes: connections to their API, and their status.

mod client;
mod status;

pub(crate) use self::client::peer_error;
pub use self::client::{PeerError, PeerNode, PeerNodes, PeerStream};
pub(crate) use self::status::Queries;
