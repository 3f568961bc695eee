//! State that outlives the daemon: desired state, intents, and other records.
//!
//! - [`records`]: entries of the state store and their encoding.
//! - [`deferring_store`]: state store that a node can start with although it cannot be written.
//! - [`reported_failure`]: failures of the state store that are reported once.

mod deferring_store;
mod records;
mod reported_failure;

pub use self::deferring_store::{DEFERRED_MAX, DeferringStore};
pub(crate) use self::records::{EVENTS, event_key, load_reserved_events, save_reserved_events};
pub use self::records::{
    Intent, StoreChange, StoredState, clear_intent, decode, encode, load_autostart_boot_id,
    load_boot_id, load_intent, load_state, path_key, save_autostart_boot_id, save_boot_id,
    save_intent, save_state, scan_all,
};
pub use self::reported_failure::ReportedFailure;
