//! Confinement of the daemon, and accesses that the confinement refused.

pub(crate) mod confinement;
pub(crate) mod refused_access;

pub use self::confinement::{ConfinementReader, RefusedCall};
pub use self::refused_access::RefusedAccess;
