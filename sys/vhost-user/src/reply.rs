//! What is answered to a front-end.

use crate::message::Header;
use crate::request::Request;

/// An answer's payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// One number: features, counts, status.
    Number(u64),
    /// Where a ring stands.
    VringState {
        /// The vring.
        index: u32,
        /// The next available index.
        base: u16,
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
}

impl Reply {
    /// The acknowledgement of a request that was asked for one: 0 is success.
    pub const fn acknowledgement(is_success: bool) -> Self {
        Self::Number(if is_success { 0 } else { 1 })
    }

    /// The whole answer to `request`: header and payload.
    pub fn encode(&self, request: Request) -> Vec<u8> {
        let payload = match self {
            Self::Number(number) => number.to_ne_bytes().to_vec(),
            Self::VringState { index, base } => {
                [index.to_ne_bytes(), u32::from(*base).to_ne_bytes()].concat()
            }
            Self::Config { offset, flags, bytes } => {
                let size = u32::try_from(bytes.len()).unwrap_or(0);
                let head = [offset.to_ne_bytes(), size.to_ne_bytes(), flags.to_ne_bytes()];
                [head.concat(), bytes.clone()].concat()
            }
        };
        let mut message = Header::of_reply(request, payload.len()).to_vec();
        message.extend(payload);
        message
    }
}
