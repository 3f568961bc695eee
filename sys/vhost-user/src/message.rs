//! Messages from a front-end: a header, a payload and descriptors become a typed
//! message, or an error that names the request and the field.

use std::os::fd::OwnedFd;

use suimon_frame::MacAddr;
use thiserror::Error;

use crate::payload::{Fields, payload_bytes};
use crate::request::Request;

/// Bytes of a message's header.
pub const HEADER_BYTES: usize = 12;

/// The longest payload of any request implemented: a configuration write.
pub const PAYLOAD_BYTES_MAX: usize = 12 + CONFIG_BYTES_MAX;

/// Descriptors one message may carry: one for each region of a memory table.
pub(crate) const FDS_MAX: usize = 8;

pub(crate) const CONFIG_BYTES_MAX: usize = 256;
pub(crate) const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;

/// What is wrong with a message. The connection cannot go on after it, because
/// the next message's start is no longer certain or the other side is confused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MessageError {
    /// A request that this back-end does not have.
    #[error(
        "request {code} is unknown or was not offered; the front-end must keep to the negotiated \
         features"
    )]
    Unknown {
        /// The request's code.
        code: u32,
    },
    /// Another protocol version.
    #[error("{request}: version {version} in `flags`, only version 1 exists")]
    Version {
        /// The request.
        request: Request,
        /// What the flags say.
        version: u32,
    },
    /// A reply, where only requests are expected.
    #[error("{request}: `flags` mark a reply, nothing was asked")]
    UnexpectedReply {
        /// The request.
        request: Request,
    },
    /// A payload length that the request cannot have.
    #[error("{request}: `size` {size}, {expected} expected")]
    Size {
        /// The request.
        request: Request,
        /// Payload bytes announced.
        size: usize,
        /// Payload bytes that the request has.
        expected: usize,
    },
    /// Too few or too many descriptors.
    #[error("{request}: {found} descriptors, {expected} expected")]
    Descriptors {
        /// The request.
        request: Request,
        /// How many came.
        found: usize,
        /// How many belong to it.
        expected: usize,
    },
    /// A number outside what the field can have.
    #[error("{request}: `{field}` {value:#x} is out of range")]
    Field {
        /// The request.
        request: Request,
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

/// A message's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What is asked.
    pub request: Request,
    /// Whether the front-end waits for an acknowledgement; counts only if
    /// `REPLY_ACK` was negotiated and the request has no reply of its own.
    pub needs_reply: bool,
    /// Payload bytes that follow, at most [`PAYLOAD_BYTES_MAX`].
    pub size: usize,
}

impl Header {
    /// The header in these bytes.
    ///
    /// # Errors
    /// An unknown request, another version, a reply, or a size no payload of
    /// this request has.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, MessageError> {
        let mut fields = Fields { rest: bytes };
        let (code, flags, size) = (fields.u32(), fields.u32(), fields.u32());
        let request = Request::from_code(code).ok_or(MessageError::Unknown { code })?;
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
        Ok(Self { request, needs_reply: flags & NEED_REPLY != 0, size })
    }
}

impl Header {
    /// The header of our answer to `request`.
    pub(crate) fn of_reply(request: Request, payload_bytes: usize) -> [u8; HEADER_BYTES] {
        let size = u32::try_from(payload_bytes).unwrap_or(0);
        let words = [request as u32, VERSION | REPLY, size].map(u32::to_ne_bytes);
        let mut bytes = [0; HEADER_BYTES];
        for (to, from) in bytes.iter_mut().zip(words.as_flattened()) {
            *to = *from;
        }
        bytes
    }
}

/// A memory region as the front-end describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// Guest-physical address of the first byte.
    pub guest_addr: u64,
    /// Length in bytes.
    pub size: u64,
    /// Address of the first byte in the front-end.
    pub user_addr: u64,
    /// Where the first byte lies in the file.
    pub mmap_offset: u64,
}

/// Where the log of written pages lies (`SET_LOG_BASE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInfo {
    /// Length in bytes: one bit for each page of 4096 bytes.
    pub size: u64,
    /// Where it starts in the file.
    pub mmap_offset: u64,
}

/// The record of what is in flight, all rings together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightInfo {
    /// Length in bytes.
    pub size: u64,
    /// Where it starts in the file.
    pub mmap_offset: u64,
    /// How many rings it has room for.
    pub queues: u16,
    /// Entries of each of them.
    pub queue_size: u16,
    /// Bytes that the description itself had on the wire: 20, or 24 where the
    /// front-end's compiler pads it. The answer has as many.
    pub wire_bytes: usize,
}

/// A descriptor for a vring.
#[derive(Debug)]
pub struct VringFd {
    /// The vring.
    pub index: u32,
    /// The descriptor; `None` if the front-end has none: the ring is polled.
    pub fd: Option<OwnedFd>,
}

/// A front-end's message.
#[derive(Debug)]
pub enum Message {
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
    /// [`Request::SetLogFd`]; `None` ends it.
    SetLogFd(Option<OwnedFd>),
    /// [`Request::GetInflightFd`]: size and offset are not yet known.
    GetInflightFd(InflightInfo),
    /// [`Request::SetInflightFd`].
    SetInflightFd(InflightInfo, OwnedFd),
    /// [`Request::SetVringNum`].
    SetVringNum {
        /// The vring.
        index: u32,
        /// Entries.
        size: u32,
    },
    /// [`Request::SetVringAddr`]: addresses of the front-end.
    SetVringAddr {
        /// The vring.
        index: u32,
        /// Descriptor table.
        descriptors: u64,
        /// Used ring.
        used: u64,
        /// Available ring.
        available: u64,
        /// Where the used ring is in the log, if writes to it are to be logged.
        log_addr: Option<u64>,
    },
    /// [`Request::SetVringBase`].
    SetVringBase {
        /// The vring.
        index: u32,
        /// Split ring: the next available index. Packed ring: the same with its
        /// wrap counter in bit 15, and the used one in the upper half.
        base: u32,
    },
    /// [`Request::GetVringBase`].
    GetVringBase {
        /// The vring.
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
        /// The vring.
        index: u32,
        /// Enabled or disabled.
        enabled: bool,
    },
    /// [`Request::SendRarp`]: for this address.
    SendRarp(MacAddr),
    /// [`Request::NetSetMtu`]: bytes of an IP packet.
    NetSetMtu(u64),
    /// [`Request::SetBackendReqFd`]: a connected socket.
    SetBackendReqFd(OwnedFd),
    /// [`Request::GetConfig`].
    GetConfig {
        /// First byte.
        offset: u32,
        /// Bytes.
        size: u32,
        /// Flags, to be returned as they are.
        flags: u32,
    },
    /// [`Request::SetConfig`].
    SetConfig {
        /// First byte.
        offset: u32,
        /// What to write.
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
