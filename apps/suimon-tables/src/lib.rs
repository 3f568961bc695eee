//! Text output of the command line: tables, the state of one object, and lines about events, made
//! from the types of the API.
//!
//! Each function takes a response of the daemon and returns text. [`resource_tables::Shown`] is
//! implemented for each kind of resource; other kinds of response have functions of their own.
//! Titles, JSON fields, units and meanings of columns are defined once, in `columns`; tables are
//! printed by these definitions, and [`reference::page`] describes them.
//!
//! This crate performs no I/O.
#![forbid(unsafe_code)]

pub mod cluster_tables;
mod columns;
mod detail_text;
mod details;
pub mod disk_tables;
pub mod event_line;
pub mod host_tables;
pub mod image_tables;
mod node_tables;
pub mod offload_tables;
pub mod operation_tables;
pub mod power_tables;
pub mod qos_tables;
pub mod queue_tables;
pub mod reference;
pub mod resource_tables;
mod table;
mod team_tables;
pub mod top;
pub mod units;
pub mod vf_tables;
pub mod vm_tables;
pub mod vmq_tables;

pub use detail_text::serialized_name;
pub use table::Table;
