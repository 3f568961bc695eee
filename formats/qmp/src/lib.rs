//! QEMU's Machine Protocol (QMP): from what QEMU sends to what it means, and from commands
//! to the bytes that QEMU reads.
//!
//! The source is QEMU's `docs/interop/qmp-spec.rst`; what commands and events carry is in its
//! `qapi/*.json`, whose names are used here.
//!
//! Lifecycle of a connection
//! - QEMU speaks first: [`Message::Greeting`]. [`Command::Capabilities`] answers it, and only
//!   then other commands are taken.
//! - Each command goes out as one line ([`Command::line`]) with a number that its answer,
//!   [`Message::Return`] or [`Message::Error`], repeats. [`Message::Event`] may come at any time.
//! - What came is handed to [`Reader::handle_bytes`] in whatever pieces it came, and
//!   [`Reader::poll_message`] gives the messages.
//!
//! The agent in a guest speaks the same way, with less ([`AgentCommand`], [`AgentReader`]).
//!
//! What it does not do: it reads and writes no socket, keeps no time, and knows nothing of which
//! commands are under way.
//!
//! Invariants
//! - A QEMU may be in its guest's hand: any bytes give messages or a typed error, never a panic,
//!   and the same ones in whatever pieces they come.
//! - No line is longer than [`LINE_BYTES_MAX`]; nothing is kept of one that was handed out.
//! - Texts that go to QEMU are values of JSON: none can break out of its place.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod agent;
mod answer;
mod chardev;
mod command;
mod device;
mod event;
mod lines;
mod message;
mod migration;
mod reader;
mod version;

pub use agent::{
    AGENT_ADDRESSES_MAX, AGENT_INTERFACES_MAX, AGENT_LINE_BYTES_MAX, AGENT_TEXT_CHARS_MAX,
    AgentCommand, AgentError, AgentInterface, AgentReader, AgentSystem, agent_count,
    agent_host_name, agent_interfaces, agent_is_frozen, agent_system, agent_version,
};
pub use answer::{
    AnswerError, Chardev, CpuSlot, QomProperty, RunState, base_memory, chardevs, cpu_count,
    cpu_slots, has_standby, is_kvm_enabled, qom_properties, run_state,
};
pub use chardev::{Reconnect, chardev_words};
pub use command::Command;
pub use device::{BlockNode, Device, Netdev};
pub use event::{Event, Trigger};
pub use message::{ErrorClass, Greeting, Message};
pub use migration::{Migration, MigrationCapability, MigrationStage, machine_name, migration};
pub use reader::{LINE_BYTES_MAX, ReadError, ReadErrorKind, Reader};
pub use version::Version;
