//! Lengths of message payloads, and a reader of their fields.

use crate::request::Request;

/// Length of the description of a memory region in bytes.
pub(crate) const REGION_BYTES: usize = 32;

/// Returns the payload length in bytes of a request whose length is fixed; `None` if it varies.
pub(crate) const fn payload_bytes(request: Request) -> Option<usize> {
    use Request as R;
    match request {
        R::SetMemTable
        | R::GetConfig
        | R::SetConfig
        | R::SetLogFd
        | R::GetInflightFd
        | R::SetInflightFd => None,
        R::GetFeatures
        | R::SetOwner
        | R::ResetOwner
        | R::GetProtocolFeatures
        | R::GetQueueNum
        | R::ResetDevice
        | R::GetMaxMemSlots
        | R::SetBackendReqFd
        | R::GetStatus => Some(0),
        R::SetLogBase => Some(16),
        R::SetVringAddr => Some(40),
        R::AddMemReg | R::RemMemReg => Some(8 + REGION_BYTES),
        _ => Some(8),
    }
}

/// Reader of native-endian integers from a payload of checked length. Returns zeros beyond its end.
pub(crate) struct PayloadReader<'a> {
    pub(crate) remaining: &'a [u8],
}

impl PayloadReader<'_> {
    pub(crate) fn read_array<const N: usize>(&mut self) -> [u8; N] {
        match self.remaining.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.remaining = rest;
                *bytes
            }
            None => [0; N],
        }
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.read_array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.read_array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.read_array())
    }
}
