//! The host: confinement of the daemon, accesses that the confinement refused, and state of the
//! state directory.

pub(crate) mod confinement;
pub(crate) mod refused_access;
mod state_store;

pub use self::confinement::{ConfinementReader, DeniedCall};
pub use self::refused_access::RefusedAccess;
pub(crate) use self::state_store::StateStoreWatch;
