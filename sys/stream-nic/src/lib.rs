//! Emulated NICs of guests without virtio drivers: QEMU sends and receives frames over a stream
//! socket (QEMU, `net/stream.c`), each preceded by its length in 4 bytes, big-endian.
//!
//! - [`framing`]: parsing of frames from a byte stream of an untrusted sender.
//! - `session`: a connection, shared by its queues and the NIC's task.
//! - `queues`: both directions of a connection, as the switch uses them.
//! - `serving`: the task that accepts connections and reports how they end. All NICs share the
//!   threads of one [`SocketRuntime`](suimon_socket_runtime::SocketRuntime).
//! - [`StreamNic`]: the NIC, a [`PortDevice`](suimon_ports::PortDevice).
//!
//! Outside of the scope: offloads, because the stream carries frames only. The switch's egress
//! segments large frames and completes checksums. There is one queue per direction. Carrier and MTU
//! are not reported to the guest.
//!
//! Life cycle of a connection: a QEMU connects; its queues are handed to the
//! [`QueueHost`](suimon_ports::QueueHost); it disconnects, violates the protocol or the NIC is
//! closed; its queues are detached. Then the next one may connect.
//!
//! Invariants
//! - A worker never blocks: the NIC's task sends what the socket did not accept, as soon as there
//!   is room. Frames that arrive meanwhile are rejected with
//!   [`TransmitResult::Full`](suimon_ports::TransmitResult::Full), which their port counts.
//! - A frame that was sent partly is completed before anything else is sent.
//! - Memory of a connection is bounded: one buffer per direction.
//! - An invalid length ends the connection with a notice that names it. The NIC then waits for the
//!   next connection; other ports are not affected.
//! - One QEMU is served at a time; further connections are closed at once.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

pub mod framing;
mod nic;
mod queues;
mod serving;
mod session;

pub use nic::StreamNic;
