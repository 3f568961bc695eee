//! Ethernet frames: buffers, header parsing, Internet checksum, segmentation and coalescing.
//!
//! A frame inside the switch consists of untagged bytes and [`FrameMeta`]: VLAN tag, checksum
//! state, and segmentation parameters. Between ports that accept them, large frames and partial
//! checksums are forwarded unchanged. [`segment`] and [`complete_checksum`] implement in software
//! the offloads an egress lacks.
//!
//! Life cycle of a frame: a source writes bytes into [`Frame::space_mut`] and validates them with
//! [`Frame::validate_ingress`]; the switch decides by [`Frame::destination`], the tag and
//! [`flow_hash`]; a sink writes the result of [`Frame::wire_format`]. For a large frame, a source
//! may copy only the headers and refer to the rest in its own memory ([`Frame::set_tail`]).
//!
//! This crate does not access devices, make forwarding decisions or read clocks.
//!
//! Invariants
//! - `FrameMeta` is consistent with the bytes: offsets lie within the frame. Sources call
//!   [`Frame::validate_ingress`] before any other code processes a frame.
//! - The buffer of an admitted frame contains all its headers. A tail is payload, and no property
//!   is derived from it before it is linearized.
//! - Parsers accept any bytes and return an error or a view; they never panic.
//! - No function allocates per frame; buffers are allocated once and reused.
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
mod header_error;
mod headers;
mod ingress;
mod ip;
mod mac;
mod meta;
mod octets;
mod segment;
mod source_mac;
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
pub use coalesce::{CoalesceResult, CoalesceTarget, coalesce};
pub use egress::WireFrame;
pub use ethernet::{ETHERNET_HEADER_BYTES, VLAN_TAG_BYTES, ethertype};
pub use flow::{Flow, FlowFields, FlowKey, flow_hash};
pub use header_error::FrameHeaderError;
pub use headers::{Headers, Transport};
pub use ingress::{GSO_HEADER_BYTES_MAX, GSO_SEGMENTS_MAX, IngressError};
pub use ip::{Fragment, Network, protocol};
pub use mac::{MacAddr, MacAddrError};
pub use meta::{Checksum, EgressForm, FrameMeta, Gso, GsoKind, Offloads};
pub use segment::{SegmentError, Segments, segment};
pub use tail::{Span, TAIL_SPANS_MAX, TailMemory, TailReader};
pub use tcp::tcp_flags;
pub use vlan::{VlanId, VlanTag};
pub use vnet_header::{VNET_HEADER_BYTES, VNET_HEADER_SHORT_BYTES, VnetHeader};
