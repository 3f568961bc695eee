//! Ethernet frames: the buffers they live in, views of their headers, the
//! Internet checksum and segmentation.
//!
//! A frame inside the switch is untagged bytes plus [`FrameMeta`]: the VLAN tag
//! it came with, what is known of its checksum, and whether it still has to be
//! segmented. Between ports that accept them, large frames and partial checksums
//! travel as they are; [`segment`] and [`complete_checksum`] do in software what
//! an egress lacks.
//!
//! The life of a frame: a source writes bytes into [`Frame::space_mut`], then
//! [`Frame::admit`] validates them; the switch decides by [`Frame::destination`],
//! the tag and [`flow_hash`]; a sink writes what [`Frame::wire`] shows. Of a large
//! frame a source may fill in no more than the headers and say where the rest lies
//! ([`Frame::set_tail`]).
//!
//! What it does not do: it never talks to a device, never decides where a frame
//! goes, never reads a clock.
//!
//! Invariants
//! - `FrameMeta` is always true of the bytes: offsets lie inside the frame.
//!   Whoever takes frames from outside calls [`Frame::admit`] before anyone else
//!   sees them.
//! - All headers that [`Frame::admit`] has let in lie in a frame's buffer. What lies
//!   behind, in a tail, is payload, and nothing is concluded from it before it was
//!   gathered.
//! - Parsers take any bytes; they return an error or a view, never panic.
//! - No function here allocates per frame; buffers are made once and reused.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod announcement;
mod batch;
mod buffer;
mod checksum;
mod coalesce;
mod egress;
mod ethernet;
mod flow;
mod headers;
mod ingress;
mod ip;
mod mac;
mod meta;
mod octets;
mod segment;
mod source_binding;
mod tail;
mod tcp;
#[cfg(test)]
mod test_streams;
mod udp;
mod vlan;
mod vnet_header;

pub use announcement::Announcement;
pub use batch::{BATCH_BYTES_MAX, BATCH_FRAMES_MAX, FrameBatch};
pub use buffer::{FRAME_BYTES_MAX, Frame};
pub use checksum::{Sum, complete_checksum, update};
pub use coalesce::{Coalesced, Lane, coalesce};
pub use egress::Wire;
pub use ethernet::{ETHERNET_HEADER_BYTES, VLAN_TAG_BYTES, ethertype};
pub use flow::{Flow, FlowFields, FlowKey, flow_hash};
pub use headers::{HeaderError, Headers, Transport};
pub use ingress::{GSO_HEADER_BYTES_MAX, GSO_SEGMENTS_MAX, MalformedFrame};
pub use ip::{Fragment, Network, protocol};
pub use mac::{MacAddr, MacAddrError};
pub use meta::{Checksum, FrameMeta, Gso, GsoKind, LeavesAs, Offloads};
pub use segment::{SegmentError, Segments, segment};
pub use tail::{Span, TAIL_SPANS_MAX, TailMemory, TailReader};
pub use tcp::tcp_flags;
pub use vlan::{VlanId, VlanTag};
pub use vnet_header::{VNET_HEADER_BYTES, VNET_HEADER_SHORT_BYTES, VnetHeader};
