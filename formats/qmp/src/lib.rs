//! QEMU Machine Protocol (QMP): parsing of QEMU's messages and encoding of commands.
//!
//! Specification: QEMU's `docs/interop/qmp-spec.rst`. Contents of commands and events:
//! `qapi/*.json`, with the names used there.
//!
//! Lifecycle of a connection
//! - QEMU sends [`QmpMessage::Greeting`]. [`Command::Capabilities`] must be the first command.
//! - Each command is one line ([`Command::line`]) with an id, which its response,
//!   [`QmpMessage::Return`] or [`QmpMessage::Error`], repeats. [`QmpMessage::Event`] may arrive at
//!   any time.
//! - Received bytes, split in any way, are passed to [`QmpReader::handle_bytes`];
//!   [`QmpReader::poll_message`] returns the messages.
//!
//! The guest agent uses a reduced variant of the protocol ([`AgentCommand`], [`AgentReader`]).
//!
//! This crate performs no I/O and no timekeeping, and does not track commands in flight.
//!
//! Invariants
//! - QEMU may be controlled by its guest: any bytes yield messages or a typed error, never a panic,
//!   independent of how they are split.
//! - Lines are limited to [`LINE_BYTES_MAX`]; a returned line is not retained.
//! - Texts that QEMU sends have at most [`TEXT_CHARS_MAX`] characters and no control characters
//!   after parsing.
//! - Texts sent to QEMU are encoded as JSON values, which prevents injection.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod agent;
mod chardev;
mod command;
mod device;
mod event;
mod line_buffer;
mod message;
mod migration;
mod reader;
mod results;
mod text;
mod version;

pub use agent::{
    AGENT_ADDRESSES_MAX, AGENT_INTERFACES_MAX, AGENT_LINE_BYTES_MAX, AGENT_TEXT_CHARS_MAX,
    AgentCommand, AgentError, AgentInterface, AgentReader, AgentSystem, decode_agent_host_name,
    decode_agent_interfaces, decode_agent_system, decode_agent_version, decode_file_system_count,
    decode_is_frozen,
};
pub use chardev::{ReconnectOption, chardev_option};
pub use command::Command;
pub use device::{BlockNode, DeviceArguments, Netdev};
pub use event::{QmpEvent, ShutdownCause};
pub use message::{ErrorClass, Greeting, QmpMessage};
pub use migration::{
    MigrationCapability, MigrationProgress, MigrationStage, decode_machine_type, decode_migration,
};
pub use reader::{LINE_BYTES_MAX, QmpReadError, QmpReader, ReadErrorKind};
pub use results::{
    Chardev, CpuSlot, QomProperty, ResultError, RunState, decode_base_memory_bytes,
    decode_chardevs, decode_cpu_count, decode_cpu_slots, decode_driver_ready, decode_kvm_enabled,
    decode_qom_properties, decode_run_state, decode_standby_negotiated,
};
pub use text::TEXT_CHARS_MAX;
pub use version::Version;
