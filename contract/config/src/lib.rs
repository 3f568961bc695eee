//! Desired state: the types of the configuration, and the definition of each of its keys.
//!
//! - [`HostConfig`] and its parts are the desired state of a host; [`Resource`] is implemented for
//!   its named parts.
//! - [`ResourceKind`] and [`Key`] define each key once: form, effect of a change, whether it is
//!   required. [`key_meaning`] and [`key_default`] derive meanings and defaults from the types,
//!   [`describe_keys`] the OpenAPI components.
//! - [`RENAMES`] lists renamed names of the whole contract. [`to_json`], [`to_stored_json`] and
//!   [`from_json`] convert with both names.
//!
//! Outside of the scope: host files, relations between keys and between resources, and observed
//! state.
//!
//! # Invariants
//! - Keys are only added or renamed.
//! - A value of a type is within the range of its notation; ranges of keys are checked elsewhere.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

/// Default folder of lab runs.
pub const LAB_RESULTS_DEFAULT: &str = "/var/lib/suimon/lab";

mod byte_size;
mod cluster_config;
mod cluster_keys;
mod config;
mod disk_config;
mod disk_format;
mod examples;
mod form;
mod form_schema;
mod host_section;
mod json_tree;
mod key;
mod key_defaults;
mod key_docs;
mod key_schema;
mod keys;
mod kind;
mod kind_type;
mod name;
mod nbd_config;
mod node_config;
mod old_names;
mod pf_config;
mod pf_keys;
mod power_config;
mod power_keys;
mod qos_config;
mod quote;
mod renamed_output;
mod renamed_schema;
mod renames;
mod resource;
mod socket_mode;
mod storage_keys;
mod store_capacity;
mod store_file;
mod strict_json;
mod team_config;
mod trunk;
mod vm_config;
mod vm_devices;
mod vm_keys;
mod vmq_config;

pub use byte_size::{ByteSize, ByteSizeError, ByteSizeText};
pub use cluster_config::{ClusterConfig, ClusterTls};
pub use config::{
    ApiConfig, ConsoleConfig, HostConfig, LabConfig, NicBackend, NicConfig, OffloadConfig,
    SwitchConfig, SwitchKind, UplinkConfig, UplinkDriver, default_mtu,
};
pub use disk_config::{DiskConfig, DiskController, DiskOnFull, DiskVhostUser, StoreConfig};
pub use disk_format::{DiskFormat, DiskKind};
pub use examples::kind_example;
pub use form::Form;
pub use host_section::HostSection;
pub use json_tree::parse_json;
pub use key::{ChangeEffect, Key};
pub use key_defaults::{as_table, key_default};
pub use key_docs::{default_text, key_meaning};
pub use key_schema::{Components, describe_keys, patch_schema_name};
pub use kind::ResourceKind;
pub use name::{Name, NameError};
pub use nbd_config::DiskNbd;
pub use node_config::NodeConfig;
pub use old_names::{name_conflict_message, replace_old_names};
pub use pf_config::{PfConfig, VF_RATE_STEP_BPS, VfConfig, VfLinkState};
pub use power_config::{EnergyPreference, PowerConfig, PowerPlanName};
pub use qos_config::{QosLimits, QosPolicyConfig, QosPolicyKind};
pub use quote::quote;
pub use renamed_output::{from_json, to_json, to_json_pretty, to_stored_json};
pub use renamed_schema::describe_renames;
pub use renames::{
    OldNameUse, RENAMES, Rename, RenamedItem, rename_of_new_key, rename_of_old_key,
    renames_of_schema, renames_page,
};
pub use resource::Resource;
pub use socket_mode::SocketMode;
pub use store_capacity::{MeasureKeyword, StoreCapacity};
pub use store_file::{StoreFile, StoreFileError};
pub use strict_json::from_value_with_renames;
pub use team_config::{
    LacpSettings, LacpTimer, TEAM_MEMBERS_MAX, TeamAlgorithm, TeamConfig, TeamMode,
};
pub use trunk::{TrunkVlans, VlanRange, VlanRangeText};
pub use vm_config::{VM_DEVICES_MAX, VM_FOLDER_DEFAULT, VmAccelerator, VmConfig, VmFirmware};
pub use vmq_config::{VmqConfig, VmqMode};
