//! Replies to a front-end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::message::{Header, InflightInfo};
use crate::request::Request;

/// Reply to a request: payload, and with [`VhostUserReply::Inflight`] a descriptor.
#[derive(Clone, Debug)]
pub enum VhostUserReply {
    /// Empty payload, for `SET_LOG_BASE`.
    Done,
    /// Single number: features, counts, status.
    Number(u64),
    /// Position of a ring that was stopped.
    VringState {
        /// Index of the vring, counted from 0.
        index: u32,
        /// Position, in the format of `SET_VRING_BASE`.
        base: u32,
    },
    /// Bytes of configuration space; empty if the request failed.
    Config {
        /// Offset in the request, returned unchanged.
        offset: u32,
        /// Flags of the request, returned unchanged.
        flags: u32,
        /// Bytes read from configuration space.
        bytes: Vec<u8>,
    },
    /// In-flight record and the file that contains it.
    Inflight(InflightInfo, Arc<OwnedFd>),
}

impl VhostUserReply {
    /// Creates the acknowledgement of a request: 0 is success.
    pub const fn acknowledgement(is_success: bool) -> Self {
        Self::Number(if is_success { 0 } else { 1 })
    }

    /// Returns the descriptor to send with the reply, if it has one.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Inflight(_, fd) => Some(fd.as_fd()),
            _ => None,
        }
    }

    /// Encodes the reply to `request`: header and payload.
    pub fn encode(&self, request: Request) -> Vec<u8> {
        let payload = match self {
            Self::Done => Vec::new(),
            Self::Number(number) => number.to_ne_bytes().to_vec(),
            Self::VringState { index, base } => [*index, *base].map(u32::to_ne_bytes).concat(),
            Self::Config { offset, flags, bytes } => {
                let size = u32::try_from(bytes.len()).unwrap_or(0);
                let header = [offset.to_ne_bytes(), size.to_ne_bytes(), flags.to_ne_bytes()];
                [header.concat(), bytes.clone()].concat()
            }
            Self::Inflight(info, _) => {
                let mut payload = [info.size, info.mmap_offset].map(u64::to_ne_bytes).concat();
                payload.extend([info.queues, info.queue_size].map(u16::to_ne_bytes).concat());
                payload.resize(info.wire_bytes, 0);
                payload
            }
        };
        let mut message = Header::encode_reply(request, payload.len()).to_vec();
        message.extend(payload);
        message
    }
}
