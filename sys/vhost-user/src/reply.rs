//! What is answered to a front-end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::message::{Header, InflightInfo};
use crate::request::Request;

/// An answer: a payload, and a descriptor with one of them.
#[derive(Clone, Debug)]
pub enum Reply {
    /// No payload at all: the log was taken over.
    Done,
    /// One number: features, counts, status.
    Number(u64),
    /// Where a ring stands.
    VringState {
        /// The vring.
        index: u32,
        /// Its position, as `SET_VRING_BASE` has it.
        base: u32,
    },
    /// Bytes of configuration space; none at all mean that the request failed.
    Config {
        /// As asked.
        offset: u32,
        /// As asked.
        flags: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A record of what is in flight, and the file it lies in.
    Inflight(InflightInfo, Arc<OwnedFd>),
}

impl Reply {
    /// The acknowledgement of a request that was asked for one: 0 is success.
    pub const fn acknowledgement(is_success: bool) -> Self {
        Self::Number(if is_success { 0 } else { 1 })
    }

    /// The descriptor that goes with it.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Inflight(_, fd) => Some(fd.as_fd()),
            _ => None,
        }
    }

    /// The whole answer to `request`: header and payload.
    pub fn encode(&self, request: Request) -> Vec<u8> {
        let payload = match self {
            Self::Done => Vec::new(),
            Self::Number(number) => number.to_ne_bytes().to_vec(),
            Self::VringState { index, base } => [*index, *base].map(u32::to_ne_bytes).concat(),
            Self::Config { offset, flags, bytes } => {
                let size = u32::try_from(bytes.len()).unwrap_or(0);
                let head = [offset.to_ne_bytes(), size.to_ne_bytes(), flags.to_ne_bytes()];
                [head.concat(), bytes.clone()].concat()
            }
            Self::Inflight(info, _) => {
                let mut payload = [info.size, info.mmap_offset].map(u64::to_ne_bytes).concat();
                payload.extend([info.queues, info.queue_size].map(u16::to_ne_bytes).concat());
                payload.resize(info.wire_bytes, 0);
                payload
            }
        };
        let mut message = Header::of_reply(request, payload.len()).to_vec();
        message.extend(payload);
        message
    }
}
