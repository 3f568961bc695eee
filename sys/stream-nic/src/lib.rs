//! NICs that QEMU emulates for guests without drivers of ours: frames come and go over a stream
//! socket (QEMU, `net/stream.c`), each behind its length in 4 bytes, big-endian.
//!
//! - [`framing`]: frames out of a stream of bytes, whoever sends it.
//! - `session`: a connection, as its queues and the NIC's task share it.
//! - `queues`: both directions of a connection, as the switch drives them.
//! - `serving`: the task that accepts connections and reports how they end. All NICs share the
//!   threads of one [`SocketRuntime`](suimon_socket_runtime::SocketRuntime).
//! - [`StreamNic`]: the NIC, a [`PortDevice`](suimon_ports::PortDevice).
//!
//! What it does not do: it has no offloads, for the stream carries frames alone. What is larger
//! than a segment or lacks its checksum is cut and summed by the switch's egress. There is one
//! queue each way. Nothing tells the guest's side of carrier or MTU.
//!
//! Lifecycle of a connection: a QEMU connects; its queues are handed to the
//! [`QueueHost`](suimon_ports::QueueHost); it leaves, breaks the protocol or the NIC is closed;
//! its queues are taken back. The next one may come.
//!
//! Invariants
//! - A worker never waits: the NIC's task sends what the socket does not accept at once, as soon as
//!   there is room, and frames that come meanwhile are refused as [`Sent::Full`](suimon_ports::Sent::Full),
//!   which their port counts.
//! - No frame is sent in part and then left: what was begun is sent before all else.
//! - Memory of a connection is bounded: one buffer each way.
//! - A length that no frame has ends the connection with a notice that names it. The NIC then
//!   waits for the next one; other ports notice nothing.
//! - One QEMU at a time; another one is turned away at once.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

pub mod framing;
mod nic;
mod queues;
mod serving;
mod session;

pub use nic::StreamNic;
