//! Messages of a front-end. Header, payload and descriptors are parsed to a typed message, or an
//! error that names the request and the field.

use std::os::fd::OwnedFd;

use suimon_frame::MacAddr;
use thiserror::Error;

use crate::fields::{PayloadReader, payload_bytes};
use crate::request::Request;

/// Size of a message header in bytes.
pub const HEADER_BYTES: usize = 12;

/// Maximum payload in bytes of any implemented request: a write to configuration space.
pub const PAYLOAD_BYTES_MAX: usize = 12 + CONFIG_BYTES_MAX;

/// Maximum number of descriptors of a message: one for each region of a memory table.
pub(crate) const FDS_MAX: usize = 8;

pub(crate) const CONFIG_BYTES_MAX: usize = 256;
pub(crate) const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;

/// Errors of invalid messages. The connection must be closed, because the start of the next message
/// is unknown or the front-end's state is inconsistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MessageError {
    /// Request that this back-end does not implement.
    #[error(
        "request {code} is unknown or was not offered; the front-end may use negotiated features \
         only"
    )]
    UnknownRequest {
        /// Unknown code in the header.
        code: u32,
    },
    /// Protocol version other than 1.
    #[error("{request}: version {version} in `flags`, only version 1 is supported")]
    Version {
        /// Request code in the message's header.
        request: Request,
        /// Version in the header's flags.
        version: u32,
    },
    /// Message marked as a reply, where only requests are expected.
    #[error("{request}: `flags` mark a reply, but no request is pending")]
    UnexpectedReply {
        /// Request code in the message's header.
        request: Request,
    },
    /// Payload length that is invalid for the request.
    #[error("{request}: `size` {size}, {expected} expected")]
    Size {
        /// Request code in the message's header.
        request: Request,
        /// Payload bytes in the header.
        size: usize,
        /// Payload length of the request in bytes.
        expected: usize,
    },
    /// Number of descriptors that is invalid for the request.
    #[error("{request}: {found} descriptors, {expected} expected")]
    Descriptors {
        /// Request code in the message's header.
        request: Request,
        /// Number of descriptors received with the message.
        found: usize,
        /// Number of descriptors of the request.
        expected: usize,
    },
    /// Field value out of range.
    #[error("{request}: `{field}` {value:#x} is out of range")]
    Field {
        /// Request code in the message's header.
        request: Request,
        /// Name of the field in the specification.
        field: &'static str,
        /// Value of the field, as received.
        value: u64,
    },
}

/// Decoded header of a front-end's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Request code in the message's header.
    pub request: Request,
    /// True if the front-end expects an acknowledgement. Only valid if `REPLY_ACK` was negotiated
    /// and the request has no reply of its own.
    pub requires_ack: bool,
    /// Length of the payload in bytes, at most [`PAYLOAD_BYTES_MAX`].
    pub size: usize,
}

impl Header {
    /// Decodes a header.
    ///
    /// # Errors
    /// An unknown request, an unsupported version, a reply, or a payload length that the request
    /// cannot have.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, MessageError> {
        let mut fields = PayloadReader { remaining: bytes };
        let (code, flags, size) = (fields.u32(), fields.u32(), fields.u32());
        let request = Request::from_code(code).ok_or(MessageError::UnknownRequest { code })?;
        if flags & VERSION_MASK != VERSION {
            return Err(MessageError::Version { request, version: flags & VERSION_MASK });
        }
        if flags & REPLY != 0 {
            return Err(MessageError::UnexpectedReply { request });
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > PAYLOAD_BYTES_MAX {
            let expected = payload_bytes(request).unwrap_or(PAYLOAD_BYTES_MAX);
            return Err(MessageError::Size { request, size, expected });
        }
        Ok(Self { request, requires_ack: flags & NEED_REPLY != 0, size })
    }
}

impl Header {
    /// Encodes the header of the reply to `request`.
    pub(crate) fn encode_reply(request: Request, payload_bytes: usize) -> [u8; HEADER_BYTES] {
        let size = u32::try_from(payload_bytes).unwrap_or(0);
        let words = [request as u32, VERSION | REPLY, size].map(u32::to_ne_bytes);
        let mut bytes = [0; HEADER_BYTES];
        for (to, from) in bytes.iter_mut().zip(words.as_flattened()) {
            *to = *from;
        }
        bytes
    }
}

/// Memory region as the front-end describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// Guest-physical address of the first byte of the region.
    pub guest_addr: u64,
    /// Length in bytes, as the front-end states it.
    pub size: u64,
    /// Address of the first byte in the front-end's address space.
    pub user_addr: u64,
    /// Offset of the first byte in the file.
    pub mmap_offset: u64,
}

/// Location of the log of written pages in its file (`SET_LOG_BASE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInfo {
    /// Length in bytes: one bit for each page of 4096 bytes.
    pub size: u64,
    /// Offset of the log in the file.
    pub mmap_offset: u64,
}

/// Size and location of the in-flight record of all rings of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightInfo {
    /// Length in bytes, as the front-end states it.
    pub size: u64,
    /// Offset of the record in the file.
    pub mmap_offset: u64,
    /// Number of rings that the record has room for.
    pub queues: u16,
    /// Maximum number of entries of each ring.
    pub queue_size: u16,
    /// Length of this description in a message, in bytes: 20, or 24 if the front-end's compiler
    /// pads the structure. The reply has the same length.
    pub wire_bytes: usize,
}

/// Descriptor that a message sets for a vring.
#[derive(Debug)]
pub struct VringFd {
    /// Index of the vring, counted from 0.
    pub index: u32,
    /// Descriptor; `None` if the front-end passes none: the ring is then polled, or not notified.
    pub fd: Option<OwnedFd>,
}

/// Message of a front-end with its parameters and descriptors.
#[derive(Debug)]
pub enum FrontEndMessage {
    /// [`Request::GetFeatures`].
    GetFeatures,
    /// [`Request::SetFeatures`]: virtio feature bits.
    SetFeatures(u64),
    /// [`Request::SetOwner`].
    SetOwner,
    /// [`Request::ResetOwner`].
    ResetOwner,
    /// [`Request::SetMemTable`].
    SetMemTable(Vec<(RegionInfo, OwnedFd)>),
    /// [`Request::AddMemReg`].
    AddMemReg(RegionInfo, OwnedFd),
    /// [`Request::RemMemReg`].
    RemMemReg(RegionInfo),
    /// [`Request::GetMaxMemSlots`].
    GetMaxMemSlots,
    /// [`Request::SetLogBase`].
    SetLogBase(LogInfo, OwnedFd),
    /// [`Request::SetLogFd`]; `None` removes the descriptor.
    SetLogFd(Option<OwnedFd>),
    /// [`Request::GetInflightFd`]: size and offset are not yet known.
    GetInflightFd(InflightInfo),
    /// [`Request::SetInflightFd`].
    SetInflightFd(InflightInfo, OwnedFd),
    /// [`Request::SetVringNum`].
    SetVringNum {
        /// Index of the vring, counted from 0.
        index: u32,
        /// Number of entries of the ring.
        size: u32,
    },
    /// [`Request::SetVringAddr`]: addresses in the front-end's address space.
    SetVringAddr {
        /// Index of the vring, counted from 0.
        index: u32,
        /// Address of the descriptor table.
        descriptors: u64,
        /// Address of the used ring.
        used: u64,
        /// Address of the available ring.
        available: u64,
        /// Guest-physical address under which writes to the used ring are recorded in the log of
        /// written pages; `None` if they are not recorded.
        log_addr: Option<u64>,
    },
    /// [`Request::SetVringBase`].
    SetVringBase {
        /// Index of the vring, counted from 0.
        index: u32,
        /// Split ring: next available index. Packed ring: next available index with its wrap
        /// counter in bit 15, and the used index likewise in the upper half.
        base: u32,
    },
    /// [`Request::GetVringBase`].
    GetVringBase {
        /// Index of the vring, counted from 0.
        index: u32,
    },
    /// [`Request::SetVringKick`].
    SetVringKick(VringFd),
    /// [`Request::SetVringCall`].
    SetVringCall(VringFd),
    /// [`Request::SetVringErr`].
    SetVringErr(VringFd),
    /// [`Request::GetProtocolFeatures`].
    GetProtocolFeatures,
    /// [`Request::SetProtocolFeatures`].
    SetProtocolFeatures(u64),
    /// [`Request::GetQueueNum`].
    GetQueueNum,
    /// [`Request::SetVringEnable`].
    SetVringEnable {
        /// Index of the vring, counted from 0.
        index: u32,
        /// True to enable the ring.
        enabled: bool,
    },
    /// [`Request::SendRarp`]: MAC address to announce.
    SendRarp(MacAddr),
    /// [`Request::NetSetMtu`]: maximum size of an IP packet in bytes.
    NetSetMtu(u64),
    /// [`Request::SetBackendReqFd`]: connected socket.
    SetBackendReqFd(OwnedFd),
    /// [`Request::GetConfig`].
    GetConfig {
        /// Offset of the first byte in configuration space.
        offset: u32,
        /// Number of bytes from `offset` on.
        size: u32,
        /// Flags, returned unchanged in the reply.
        flags: u32,
    },
    /// [`Request::SetConfig`].
    SetConfig {
        /// Offset of the first byte in configuration space.
        offset: u32,
        /// Bytes to write from `offset` on.
        bytes: Vec<u8>,
    },
    /// [`Request::ResetDevice`].
    ResetDevice,
    /// [`Request::SetStatus`]: virtio device status.
    SetStatus(u8),
    /// [`Request::GetStatus`].
    GetStatus,
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
