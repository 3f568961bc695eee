//! Front-end side of the socket: the subset of vhost-user that one queue of a disk needs (QEMU,
//! docs/interop/vhost-user.rst).

use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::memory::{GUEST_BASE, Memory, USER_BASE};

/// Feature bits of virtio-blk (virtio 1.3, sections 5.2.3 and 6). The last one is
/// `VHOST_USER_F_PROTOCOL_FEATURES`.
pub(crate) const SIZE_MAX: u64 = 1 << 1;
pub(crate) const SEG_MAX: u64 = 1 << 2;
pub(crate) const READ_ONLY: u64 = 1 << 5;
pub(crate) const FLUSH: u64 = 1 << 9;
pub(crate) const INDIRECT: u64 = 1 << 28;
pub(crate) const EVENT_INDEX: u64 = 1 << 29;
pub(crate) const VERSION_1: u64 = 1 << 32;
pub(crate) const PACKED: u64 = 1 << 34;
const PROTOCOL_FEATURES: u64 = 1 << 30;

/// Protocol feature `VHOST_USER_PROTOCOL_F_MQ`: multiple queues.
const MULTIPLE_QUEUES: u64 = 1;
/// Protocol feature `VHOST_USER_PROTOCOL_F_CONFIG`: configuration space.
const CONFIG: u64 = 1 << 9;

const GET_FEATURES: u32 = 1;
const SET_FEATURES: u32 = 2;
const SET_OWNER: u32 = 3;
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_ADDR: u32 = 9;
const SET_VRING_BASE: u32 = 10;
const SET_VRING_KICK: u32 = 12;
const SET_VRING_CALL: u32 = 13;
const GET_PROTOCOL_FEATURES: u32 = 15;
const SET_PROTOCOL_FEATURES: u32 = 16;
const SET_VRING_ENABLE: u32 = 18;
const GET_CONFIG: u32 = 24;

const VERSION: u32 = 1;
const REPLY: u32 = 1 << 2;
/// Maximum payload of a reply in bytes.
const PAYLOAD_MAX: u32 = 4096;
/// Time limit for a reply of the back-end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of bytes of configuration space that are read: `capacity`, `size_max`, `seg_max`, the
/// geometry and `blk_size`.
const CONFIG_BYTES: u32 = 24;

/// Properties of the disk that the back-end offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    pub(crate) features: u64,
    /// Capacity in bytes; `None` if the back-end offers no configuration space.
    pub(crate) size: Option<u64>,
    /// Maximum size of a segment in bytes; `u64::MAX` if unlimited.
    pub(crate) size_max: u64,
    /// Maximum number of segments of a request; `u64::MAX` if unlimited.
    pub(crate) seg_max: u64,
}

/// Guest addresses of the three areas of a ring, and its initial position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingLayout {
    pub(crate) entries: u16,
    pub(crate) base: u32,
    pub(crate) descriptors: u64,
    pub(crate) driver: u64,
    pub(crate) device: u64,
}

/// Connection to a back-end.
#[derive(Debug)]
pub(crate) struct FrontEnd {
    stream: UnixStream,
    has_protocol: bool,
}

impl FrontEnd {
    pub(crate) fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket)
            .with_context(|| format!("no back-end answers at {}", socket.display()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, has_protocol: false })
    }

    /// Negotiates all `required` features, and those of the `requested` ones that the back-end
    /// offers. Returns the disk's properties.
    ///
    /// # Errors
    /// A required feature is not offered, or the back-end does not reply.
    pub(crate) fn negotiate(&mut self, requested: u64, required: u64) -> Result<Disk> {
        let offered = self.number(GET_FEATURES)?;
        for (feature, name) in [(VERSION_1, "VIRTIO_F_VERSION_1"), (PACKED, "VIRTIO_F_RING_PACKED")]
        {
            let is_there = required & feature & !offered == 0;
            ensure!(is_there, "the back-end does not offer {name}");
        }
        self.has_protocol = offered & PROTOCOL_FEATURES != 0;
        let mut has_config = false;
        if self.has_protocol {
            let protocol = self.number(GET_PROTOCOL_FEATURES)? & (MULTIPLE_QUEUES | CONFIG);
            has_config = protocol & CONFIG != 0;
            self.send(SET_PROTOCOL_FEATURES, &protocol.to_ne_bytes(), &[])?;
        }
        self.send(SET_OWNER, &[], &[])?;
        // Limits that cannot be read from configuration space are not negotiated.
        let limits = if has_config { SIZE_MAX | SEG_MAX } else { 0 };
        let features = offered & (requested | required | limits | READ_ONLY | PROTOCOL_FEATURES);
        self.send(SET_FEATURES, &features.to_ne_bytes(), &[])?;
        let mut disk = Disk { features, size: None, size_max: u64::MAX, seg_max: u64::MAX };
        if has_config {
            let config = self.config()?;
            let word = |offset: usize| {
                let bytes = config.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
                bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(bytes)))
            };
            disk.size = Some((word(0) | word(4) << 32).saturating_mul(512));
            // A limit of 0 means no limit.
            let limit = |bit, offset| {
                let limit = word(offset);
                if features & bit == 0 || limit == 0 { u64::MAX } else { limit }
            };
            (disk.size_max, disk.seg_max) = (limit(SIZE_MAX, 8), limit(SEG_MAX, 12));
        }
        Ok(disk)
    }

    fn config(&mut self) -> Result<Vec<u8>> {
        let mut request = [0, CONFIG_BYTES, 0].map(u32::to_ne_bytes).concat();
        request.resize(request.len() + CONFIG_BYTES as usize, 0);
        self.send(GET_CONFIG, &request, &[])?;
        let answer = self.reply(GET_CONFIG)?;
        ensure!(
            answer.len() == request.len(),
            "the back-end does not tell its configuration space"
        );
        Ok(answer[12..].to_vec())
    }

    pub(crate) fn share_memory(&mut self, memory: &Memory) -> Result<()> {
        let table = [1, GUEST_BASE, memory.bytes(), USER_BASE, 0].map(u64::to_ne_bytes).concat();
        self.send(SET_MEM_TABLE, &table, &[memory.file().as_fd()])
    }

    /// Starts ring 0. The driver kicks it through `kick`; the back-end interrupts through `call`.
    pub(crate) fn start(
        &mut self,
        ring: RingLayout,
        kick: BorrowedFd<'_>,
        call: BorrowedFd<'_>,
    ) -> Result<()> {
        let state = |number: u32| [0, number].map(u32::to_ne_bytes).concat();
        self.send(SET_VRING_NUM, &state(ring.entries.into()), &[])?;
        self.send(SET_VRING_BASE, &state(ring.base), &[])?;
        let [descriptors, device, driver] =
            [ring.descriptors, ring.device, ring.driver].map(|address| USER_BASE + address);
        let addresses = [0, descriptors, device, driver, 0].map(u64::to_ne_bytes).concat();
        self.send(SET_VRING_ADDR, &addresses, &[])?;
        let first = 0_u64.to_ne_bytes();
        self.send(SET_VRING_CALL, &first, &[call])?;
        self.send(SET_VRING_KICK, &first, &[kick])?;
        // Without protocol features, rings start enabled (vhost-user,
        // `VHOST_USER_SET_VRING_ENABLE`).
        if self.has_protocol { self.send(SET_VRING_ENABLE, &state(1), &[]) } else { Ok(()) }
    }

    fn number(&mut self, request: u32) -> Result<u64> {
        self.send(request, &[], &[])?;
        let payload = self.reply(request)?;
        let bytes = payload.try_into().ok().context("the back-end answers with no number")?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn send(&self, request: u32, payload: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
        let length = u32::try_from(payload.len()).context("a message is too long")?;
        let header = [request, VERSION, length].map(u32::to_ne_bytes).concat();
        let message = [header, payload.to_vec()].concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            bail!("a message has more descriptors than one");
        }
        let slices = [IoSlice::new(&message)];
        let sent = sendmsg(&self.stream, &slices, &mut control, SendFlags::NOSIGNAL);
        let sent = sent.with_context(|| format!("the back-end takes no message {request}"))?;
        ensure!(sent == message.len(), "the back-end took a part of message {request}");
        Ok(())
    }

    fn reply(&mut self, request: u32) -> Result<Vec<u8>> {
        let context = || format!("the back-end does not answer message {request}");
        let mut header = [0; 12];
        self.stream.read_exact(&mut header).with_context(context)?;
        let word = |offset: usize| {
            let bytes =
                [header[offset], header[offset + 1], header[offset + 2], header[offset + 3]];
            u32::from_ne_bytes(bytes)
        };
        let (reply_to, flags, length) = (word(0), word(4), word(8));
        let is_answer = reply_to == request && flags & REPLY != 0 && length <= PAYLOAD_MAX;
        ensure!(
            is_answer,
            "the back-end answers message {request} with {reply_to}, {length} bytes"
        );
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).with_context(context)?;
        Ok(payload)
    }
}
