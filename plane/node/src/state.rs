//! State that outlives the daemon: desired state, intents, and records of created objects.
//!
//! - [`records`]: entries of the state store and their encoding.
//! - [`created_objects`]: TAPs and socket files that the daemon created and may delete.
//! - [`deferring_store`]: state store that a node can start with although it cannot be written.
//! - [`store_watch`]: events and status of a state store that cannot be written.

mod created_objects;
mod deferring_store;
mod records;
mod store_watch;

pub(crate) use self::created_objects::CreatedObjects;
pub(crate) use self::deferring_store::DeferringStore;
pub(crate) use self::records::{
    EVENTS, Intent, StoreChange, StoredState, clear_intent, decode, encode, event_key, load_boot,
    load_intent, load_reserved_events, load_state, path_key, save_boot, save_intent,
    save_reserved_events, save_state, scan_all,
};
pub(crate) use self::store_watch::StateStoreWatch;
