//! Other nodes: connections to their API, and their status.

mod client;
mod status;

pub(crate) use self::client::far_error;
pub use self::client::{FarError, FarLine, FarNode, FarNodes};
pub(crate) use self::status::Questions;
