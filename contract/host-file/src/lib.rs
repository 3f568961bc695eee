//! Host files and other notations of desired state: reading, checks, writing, and the plan of a
//! change.
//!
//! - [`parse_toml`] and [`to_toml`] read and write host files; [`parse_resource`],
//!   [`patch_resource`], [`parse_apply`] and others read JSON bodies. All of them pass the same
//!   checks, so that errors name the key.
//! - [`validate`] checks relations between keys and between resources; [`validate_change`] a
//!   change.
//! - [`Plan::between`] returns the steps from one desired state to another.
//! - [`ApiError`] is a fault with its resource, key, file and line.
//!
//! This crate performs no I/O and does not examine the host. The daemon checks whether devices
//! exist.
//!
//! # Invariants
//! - A configuration accepted by a parser of this crate refers to existing resources only, uses no
//!   name, device, socket or address twice, and has every value within its range.
//! - Error codes keep their meaning.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod apply_request;
mod change_checks;
mod claims;
mod cluster_checks;
mod diff;
mod disk_checks;
mod document;
mod error;
mod finding;
mod iov_checks;
mod json_body;
mod nbd_checks;
mod node_checks;
mod pf_checks;
mod plan;
mod power_checks;
mod qos_checks;
mod references;
mod renamed_input;
mod table_check;
mod team_checks;
#[cfg(test)]
mod test_configs;
#[cfg(test)]
mod test_disks;
mod toml_file;
mod toml_lines;
mod toml_writer;
mod uplink_checks;
mod validate;
mod vm_checks;
mod vmq_checks;

// Types and keys of the configuration, which most modules of this crate use.
use suimon_config::*;

pub use apply_request::ApplyRequest;
pub use change_checks::validate_change;
pub use disk_checks::STORE_DISKS_MAX;
pub use error::{ApiError, ErrorBody, ErrorCode};
pub use json_body::{
    JSON_BYTES_MAX, check_patch, contains_host_file, host_file_in_apply, locate_errors_of_apply,
    old_names_in_apply, old_names_in_table, parse_apply, parse_cluster, parse_power, parse_request,
    parse_request_with_old_names, parse_resource, patch_cluster, patch_power, patch_resource,
};
pub use plan::{FieldChange, Plan, PlanAction, PlanStep};
pub use toml_file::{TOML_BYTES_MAX, locate_errors, old_names_in_file, parse_toml};
pub use toml_writer::to_toml;
pub use validate::{validate, validate_qos};
