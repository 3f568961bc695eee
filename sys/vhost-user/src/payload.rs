//! Parsing of message payloads and descriptors.

use std::os::fd::OwnedFd;

use suimon_frame::MacAddr;
use suimon_ring::QUEUE_SIZE_MAX;

use crate::fields::{PayloadReader, REGION_BYTES, payload_bytes};
use crate::message::{
    CONFIG_BYTES_MAX, FDS_MAX, FrontEndMessage, Header, InflightInfo, LogInfo, MessageError,
    RegionInfo, VringFd,
};
use crate::request::Request;

/// Number of vrings that a message can address: messages with a descriptor have an 8-bit index.
const VRINGS_MAX: u16 = 256;
/// Bit of the payload of a message with a vring's descriptor: set if the message carries no
/// descriptor.
const NO_FD: u64 = 1 << 8;
/// Flag `VHOST_VRING_F_LOG` of a vring's addresses: writes to its used ring are logged.
const LOGS_USED: u32 = 1;
/// Length of the in-flight description in bytes.
const INFLIGHT_BYTES: usize = 20;
const INFLIGHT_BYTES_PADDED: usize = 24;

impl FrontEndMessage {
    /// Parses the message with this header, payload and descriptors.
    ///
    /// # Errors
    /// Length, number of descriptors or a field is invalid for the request. The descriptors are
    /// closed.
    pub fn parse(header: &Header, payload: &[u8], fds: Vec<OwnedFd>) -> Result<Self, MessageError> {
        use Request as R;
        let request = header.request;
        let mut body = Body { request, fields: PayloadReader { remaining: payload }, fds };
        if let Some(expected) = payload_bytes(request) {
            body.expect_size(payload.len(), expected)?;
        }
        // A descriptor of a removal is closed unused: the specification permits front-ends to send
        // one.
        if request == R::RemMemReg && body.fds.len() == 1 {
            body.fds.clear();
        }
        let message = match request {
            R::GetFeatures => Self::GetFeatures,
            R::SetOwner => Self::SetOwner,
            R::ResetOwner => Self::ResetOwner,
            R::GetMaxMemSlots => Self::GetMaxMemSlots,
            R::GetProtocolFeatures => Self::GetProtocolFeatures,
            R::GetQueueNum => Self::GetQueueNum,
            R::ResetDevice => Self::ResetDevice,
            R::GetStatus => Self::GetStatus,
            R::SetFeatures => Self::SetFeatures(body.fields.u64()),
            R::SetProtocolFeatures => Self::SetProtocolFeatures(body.fields.u64()),
            R::NetSetMtu => Self::NetSetMtu(body.fields.u64()),
            R::SendRarp => Self::SendRarp(body.mac()?),
            R::SetStatus => Self::SetStatus(body.status()?),
            R::SetVringNum => body.vring_num(),
            R::SetVringBase => body.vring_base(),
            R::GetVringBase => Self::GetVringBase { index: body.fields.u32() },
            R::SetVringEnable => body.vring_enable()?,
            R::SetVringAddr => body.vring_addr(),
            R::SetVringKick => Self::SetVringKick(body.vring_fd()?),
            R::SetVringCall => Self::SetVringCall(body.vring_fd()?),
            R::SetVringErr => Self::SetVringErr(body.vring_fd()?),
            R::SetMemTable => body.mem_table()?,
            R::AddMemReg => body.add_region()?,
            R::RemMemReg => Self::RemMemReg(body.padded_region()),
            R::SetBackendReqFd => Self::SetBackendReqFd(body.one_fd()?),
            R::SetLogBase => body.log_base()?,
            R::SetLogFd => body.log_fd()?,
            R::GetInflightFd | R::SetInflightFd => body.inflight()?,
            R::GetConfig | R::SetConfig => body.config()?,
        };
        body.expect_fds(0, 0)?;
        Ok(message)
    }
}

struct Body<'a> {
    request: Request,
    fields: PayloadReader<'a>,
    fds: Vec<OwnedFd>,
}

impl Body<'_> {
    fn expect_size(&self, size: usize, expected: usize) -> Result<(), MessageError> {
        if size == expected {
            return Ok(());
        }
        Err(MessageError::Size { request: self.request, size, expected })
    }

    /// Checks that `remaining` descriptors remain after `taken_count` ones were taken for fields.
    fn expect_fds(&self, taken_count: usize, remaining: usize) -> Result<(), MessageError> {
        if self.fds.len() == remaining {
            return Ok(());
        }
        let (found, expected) = (taken_count + self.fds.len(), taken_count + remaining);
        Err(MessageError::Descriptors { request: self.request, found, expected })
    }

    fn one_fd(&mut self) -> Result<OwnedFd, MessageError> {
        self.expect_fds(0, 1)?;
        let missing = MessageError::Descriptors { request: self.request, found: 0, expected: 1 };
        self.fds.pop().ok_or(missing)
    }

    fn out_of_range(&self, field: &'static str, value: u64) -> MessageError {
        MessageError::Field { request: self.request, field, value }
    }

    fn mac(&mut self) -> Result<MacAddr, MessageError> {
        let [a, b, c, d, e, f, _, _] = self.fields.read_array::<8>();
        let mac = MacAddr::new([a, b, c, d, e, f]);
        if mac.is_station() { Ok(mac) } else { Err(self.out_of_range("mac", mac.to_u64())) }
    }

    fn status(&mut self) -> Result<u8, MessageError> {
        let status = self.fields.u64();
        u8::try_from(status).map_err(|_| self.out_of_range("status", status))
    }

    fn vring_num(&mut self) -> FrontEndMessage {
        FrontEndMessage::SetVringNum { index: self.fields.u32(), size: self.fields.u32() }
    }

    fn vring_base(&mut self) -> FrontEndMessage {
        FrontEndMessage::SetVringBase { index: self.fields.u32(), base: self.fields.u32() }
    }

    fn vring_enable(&mut self) -> Result<FrontEndMessage, MessageError> {
        let (index, enabled) = (self.fields.u32(), self.fields.u32());
        match enabled {
            0 | 1 => Ok(FrontEndMessage::SetVringEnable { index, enabled: enabled == 1 }),
            value => Err(self.out_of_range("num", u64::from(value))),
        }
    }

    fn vring_addr(&mut self) -> FrontEndMessage {
        let index = self.fields.u32();
        let flags = self.fields.u32();
        let (descriptors, used) = (self.fields.u64(), self.fields.u64());
        let (available, log_addr) = (self.fields.u64(), self.fields.u64());
        let log_addr = (flags & LOGS_USED != 0).then_some(log_addr);
        FrontEndMessage::SetVringAddr { index, descriptors, used, available, log_addr }
    }

    fn log_base(&mut self) -> Result<FrontEndMessage, MessageError> {
        let fd = self.one_fd()?;
        let info = LogInfo { size: self.fields.u64(), mmap_offset: self.fields.u64() };
        Ok(FrontEndMessage::SetLogBase(info, fd))
    }

    /// Parses `SET_LOG_FD`. The specification defines no payload for this request; some front-ends
    /// send the number that accompanies other descriptors.
    fn log_fd(&mut self) -> Result<FrontEndMessage, MessageError> {
        if self.fields.remaining.len() != 8 {
            self.expect_size(self.fields.remaining.len(), 0)?;
        }
        let fd = if self.fds.is_empty() { None } else { Some(self.one_fd()?) };
        Ok(FrontEndMessage::SetLogFd(fd))
    }

    fn inflight(&mut self) -> Result<FrontEndMessage, MessageError> {
        let wire_bytes = self.fields.remaining.len();
        if wire_bytes != INFLIGHT_BYTES_PADDED {
            self.expect_size(wire_bytes, INFLIGHT_BYTES)?;
        }
        let info = InflightInfo {
            size: self.fields.u64(),
            mmap_offset: self.fields.u64(),
            queues: self.fields.u16(),
            queue_size: self.fields.u16(),
            wire_bytes,
        };
        if info.queues == 0 || info.queues > VRINGS_MAX {
            return Err(self.out_of_range("num queues", u64::from(info.queues)));
        }
        if !(1..=QUEUE_SIZE_MAX).contains(&info.queue_size) {
            return Err(self.out_of_range("queue size", u64::from(info.queue_size)));
        }
        Ok(match self.request {
            Request::SetInflightFd => FrontEndMessage::SetInflightFd(info, self.one_fd()?),
            _ => FrontEndMessage::GetInflightFd(info),
        })
    }

    fn vring_fd(&mut self) -> Result<VringFd, MessageError> {
        let value = self.fields.u64();
        if value & !(NO_FD | 0xff) != 0 {
            return Err(self.out_of_range("u64", value));
        }
        let fd = if value & NO_FD == 0 { Some(self.one_fd()?) } else { None };
        Ok(VringFd { index: (value & 0xff) as u32, fd })
    }

    fn region(&mut self) -> RegionInfo {
        RegionInfo {
            guest_addr: self.fields.u64(),
            size: self.fields.u64(),
            user_addr: self.fields.u64(),
            mmap_offset: self.fields.u64(),
        }
    }

    fn padded_region(&mut self) -> RegionInfo {
        let _padding = self.fields.u64();
        self.region()
    }

    fn add_region(&mut self) -> Result<FrontEndMessage, MessageError> {
        let fd = self.one_fd()?;
        Ok(FrontEndMessage::AddMemReg(self.padded_region(), fd))
    }

    fn mem_table(&mut self) -> Result<FrontEndMessage, MessageError> {
        let size = self.fields.remaining.len();
        self.expect_size(size.min(8), 8)?;
        let count = self.fields.u32();
        let _padding = self.fields.u32();
        let regions = usize::try_from(count).ok().filter(|count| (1..=FDS_MAX).contains(count));
        let Some(regions) = regions else {
            return Err(self.out_of_range("num regions", u64::from(count)));
        };
        // Some front-ends always send the array with its maximum length.
        if size != 8 + FDS_MAX * REGION_BYTES {
            self.expect_size(size, 8 + regions * REGION_BYTES)?;
        }
        self.expect_fds(0, regions)?;
        let fds = core::mem::take(&mut self.fds);
        Ok(FrontEndMessage::SetMemTable(fds.into_iter().map(|fd| (self.region(), fd)).collect()))
    }

    fn config(&mut self) -> Result<FrontEndMessage, MessageError> {
        let total_bytes = self.fields.remaining.len();
        self.expect_size(total_bytes.min(12), 12)?;
        let (offset, size, flags) = (self.fields.u32(), self.fields.u32(), self.fields.u32());
        let bytes = self.fields.remaining;
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        if length > CONFIG_BYTES_MAX {
            return Err(self.out_of_range("size", u64::from(size)));
        }
        self.expect_size(total_bytes, 12 + length)?;
        Ok(match self.request {
            Request::SetConfig => FrontEndMessage::SetConfig { offset, bytes: bytes.to_vec() },
            _ => FrontEndMessage::GetConfig { offset, size, flags },
        })
    }
}
