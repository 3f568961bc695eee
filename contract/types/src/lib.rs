//! The contract between the daemon and everybody else: the API's types, the host
//! file, its validation, and the plan a change amounts to.
//!
//! Desired state ([`HostConfig`] and its parts) and observed state (`…Status`)
//! are separate types. Both sides of the API use these very types, so there is
//! nothing to generate between them; for other languages the daemon serves the
//! OpenAPI document made from them.
//!
//! What it does not do: no I/O, no look at the host. Whether a device exists is
//! asked by the daemon.
//!
//! Invariants
//! - Whatever `parse` lets through refers only to what exists in it, holds no
//!   name, device, socket or address twice, and has every value in its range.
//! - Keys are only ever added; error codes, event numbers and drop reasons keep
//!   their meaning.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod claims;
mod config;
mod diff;
mod document;
mod error;
mod event;
mod event_kinds;
mod finding;
mod form;
mod json_body;
mod keys;
mod name;
mod operation;
mod plan;
mod request;
mod shape;
mod status;
#[cfg(test)]
mod test_configs;
mod toml_file;
mod toml_lines;
mod toml_writer;
mod trunk;
mod validate;

pub use config::{
    ApiConfig, HostConfig, HostSection, NicBackend, NicConfig, OffloadConfig, SocketMode,
    SwitchConfig, SwitchKind, UplinkConfig, UplinkDriver,
};
pub use error::{ApiError, ErrorBody, ErrorCode};
pub use event::{Event, Severity};
pub use event_kinds::EventKind;
pub use form::Form;
pub use json_body::{JSON_BYTES_MAX, Resource, parse_apply, parse_resource, patch_resource};
pub use keys::{Effect, Key, Kind};
pub use name::{Name, NameError};
pub use operation::{Operation, OperationState};
pub use plan::{FieldChange, Plan, PlanAction, PlanStep};
pub use request::{ApplyRequest, MoveQueueRequest};
pub use status::{
    AddressStatus, Condition, DropCounter, Health, HostStatus, NicStatus, OffloadStatus,
    PortCounters, ProcessorStatus, QueueStatus, SwitchStatus, TopPort, TopSnapshot, UplinkStatus,
};
pub use toml_file::{TOML_BYTES_MAX, parse_toml};
pub use toml_writer::{default_of, to_toml};
pub use trunk::{TrunkVlans, VlanRange, VlanRangeText};
pub use validate::validate;
