//! One front-end's NIC: what its messages do to the rings. No socket, no thread.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use suimon_frame::MacAddr;
use suimon_ports::QueueHost;
use suimon_quantity::PortId;
use suimon_ring::{
    GuestMemory, MemoryError, OffloadMask, REGIONS_MAX, Region, RegionSpec, RingAddresses,
    RingFeatures,
};

use crate::fault::DeviceFault;
use crate::features::{Offer, protocol};
use crate::message::{Message, RegionInfo, VringFd};
use crate::reply::Reply;
use crate::request::Request;
use crate::vring::{Kick, Vring};

/// Bytes of configuration space we fill (virtio 1.3, section 5.1.4).
const CONFIG_BYTES: usize = 24;

/// What a device is connected to, and what it is told about itself.
#[derive(Clone)]
pub struct DeviceLink {
    /// The port whose NIC it is.
    pub port: PortId,
    /// Takes the rings.
    pub host: Arc<dyn QueueHost>,
    /// What may be handed to the guest now.
    pub mask: Arc<OffloadMask>,
    /// What is offered.
    pub offer: Offer,
    /// The guest's address, if we know it.
    pub mac: Option<MacAddr>,
    /// Largest IP packet the port carries.
    pub mtu: u16,
}

/// One front-end's NIC.
pub struct Device {
    link: DeviceLink,
    features: u64,
    protocol: u64,
    status: u8,
    regions: Vec<Arc<Region>>,
    memory: Option<Arc<GuestMemory>>,
    vrings: Vec<Vring>,
    /// To be announced when a transmit ring runs.
    announcement: Option<MacAddr>,
}

impl Device {
    /// A NIC as a new front-end finds it.
    pub fn new(link: DeviceLink) -> Self {
        let vrings = (0..link.offer.queue_pairs.saturating_mul(2)).map(Vring::new).collect();
        Self {
            link,
            features: 0,
            protocol: 0,
            status: 0,
            regions: Vec::new(),
            memory: None,
            vrings,
            announcement: None,
        }
    }

    /// Virtio features the front-end has chosen.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Whether acknowledgements were negotiated.
    pub fn acknowledges(&self) -> bool {
        self.protocol & protocol::REPLY_ACK != 0
    }

    /// Queue pairs of which both rings run.
    pub fn running_pairs(&self) -> u16 {
        let pairs = self.vrings.chunks_exact(2);
        let running = pairs.filter(|pair| pair.iter().all(Vring::is_running)).count();
        u16::try_from(running).unwrap_or(u16::MAX)
    }

    /// Carries a message out. `Some` is the answer that the request has by its
    /// nature; acknowledgements are the caller's.
    ///
    /// # Errors
    /// The message was not carried out; see [`DeviceFault::is_fatal`].
    pub fn handle(&mut self, message: Message) -> Result<Option<Reply>, DeviceFault> {
        use Message as M;
        match message {
            M::GetFeatures => return number(self.link.offer.features),
            M::GetProtocolFeatures => return number(self.link.offer.protocol),
            M::GetQueueNum => return number(u64::from(self.link.offer.queue_pairs)),
            M::GetMaxMemSlots => return number(REGIONS_MAX as u64),
            M::GetStatus => return number(u64::from(self.status)),
            M::GetVringBase { index } => return self.vring_base(index),
            M::GetConfig { offset, size, flags } => return self.config(offset, size, flags),
            M::SetOwner | M::SetBackendReqFd => {}
            M::SetFeatures(bits) => self.set_features(bits)?,
            M::SetProtocolFeatures(bits) => {
                let offered = self.link.offer.protocol;
                check_offered(Request::SetProtocolFeatures, bits, offered)?;
                self.protocol = bits;
            }
            M::SetStatus(status) => self.set_status(status),
            M::ResetOwner => self.disable_all(),
            M::ResetDevice => self.reset(),
            M::SetMemTable(table) => self.set_memory(&table)?,
            M::AddMemReg(info, fd) => self.add_region(info, &fd)?,
            M::RemMemReg(info) => self.remove_region(info)?,
            M::SetVringNum { index, size } => {
                self.stopped(Request::SetVringNum, index)?.size = size;
                self.start_rings(Request::SetVringNum)?;
            }
            M::SetVringAddr { index, descriptors, used, available } => {
                let addresses = RingAddresses { descriptors, available, used };
                self.stopped(Request::SetVringAddr, index)?.addresses = Some(addresses);
                self.start_rings(Request::SetVringAddr)?;
            }
            M::SetVringBase { index, base } => {
                self.stopped(Request::SetVringBase, index)?.base = base;
                self.start_rings(Request::SetVringBase)?;
            }
            M::SetVringEnable { index, enabled } => {
                self.enable(index, enabled)?;
            }
            M::SetVringKick(vring_fd) => self.set_kick(vring_fd)?,
            M::SetVringCall(vring_fd) => {
                let fd = checked(Request::SetVringCall, vring_fd.index, vring_fd.fd)?;
                self.vring(Request::SetVringCall, vring_fd.index)?.connect_call(fd);
            }
            M::SetVringErr(vring_fd) => {
                let fd = checked(Request::SetVringErr, vring_fd.index, vring_fd.fd)?;
                self.vring(Request::SetVringErr, vring_fd.index)?.connect_error(fd);
            }
            M::SendRarp(mac) => {
                self.announcement = Some(mac);
                self.announce();
            }
            M::NetSetMtu(mtu) => {
                let max = self.link.mtu;
                if mtu < 68 || mtu > u64::from(max) {
                    return Err(DeviceFault::Mtu { mtu, max });
                }
            }
            M::SetConfig { offset, bytes } => {
                return Err(DeviceFault::ReadOnly { offset, bytes: bytes.len() });
            }
        }
        Ok(None)
    }

    /// Takes every ring back.
    pub fn stop_all(&mut self) {
        for vring in &mut self.vrings {
            vring.stop(self.link.port, &*self.link.host);
        }
    }

    fn vring(&mut self, request: Request, index: u32) -> Result<&mut Vring, DeviceFault> {
        let count = self.vrings.len();
        let vring = usize::try_from(index).ok().and_then(|index| self.vrings.get_mut(index));
        vring.ok_or(DeviceFault::VringIndex { request, index, count })
    }

    /// A vring that is about to be changed, so it does not run.
    fn stopped(&mut self, request: Request, index: u32) -> Result<&mut Vring, DeviceFault> {
        let (port, host) = (self.link.port, Arc::clone(&self.link.host));
        let vring = self.vring(request, index)?;
        vring.stop(port, &*host);
        Ok(vring)
    }

    /// Starts every ring that can run and does not. `request` is the one that
    /// made it possible.
    fn start_rings(&mut self, request: Request) -> Result<(), DeviceFault> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let features = RingFeatures(self.features);
        // Without protocol features a ring starts enabled.
        let starts_enabled = !features.has(protocol::FEATURES_BIT);
        let link = &self.link;
        for vring in &mut self.vrings {
            if !vring.is_running() && vring.is_described() && (vring.is_enabled || starts_enabled) {
                vring
                    .start(link.port, &*link.host, memory, features, &link.mask)
                    .map_err(|source| DeviceFault::Ring { request, source })?;
            }
        }
        self.announce();
        Ok(())
    }

    fn set_features(&mut self, bits: u64) -> Result<(), DeviceFault> {
        check_offered(Request::SetFeatures, bits, self.link.offer.features)?;
        if bits != self.features {
            self.stop_all();
            self.features = bits;
        }
        self.start_rings(Request::SetFeatures)
    }

    fn enable(&mut self, index: u32, is_enabled: bool) -> Result<(), DeviceFault> {
        let request = Request::SetVringEnable;
        if self.vring(request, index)?.is_enabled != is_enabled {
            self.stopped(request, index)?.is_enabled = is_enabled;
            self.start_rings(request)?;
        }
        Ok(())
    }

    fn set_kick(&mut self, vring_fd: VringFd) -> Result<(), DeviceFault> {
        let request = Request::SetVringKick;
        let fd = checked(request, vring_fd.index, vring_fd.fd)?;
        let vring = self.stopped(request, vring_fd.index)?;
        vring.kick = Some(fd.map_or(Kick::Polled, |fd| Kick::Fd(Arc::new(fd))));
        self.start_rings(request)
    }

    fn vring_base(&mut self, index: u32) -> Result<Option<Reply>, DeviceFault> {
        let vring = self.stopped(Request::GetVringBase, index)?;
        vring.kick = None;
        Ok(Some(Reply::VringState { index, base: vring.base }))
    }

    fn set_status(&mut self, status: u8) {
        self.status = status;
        if status == 0 {
            self.stop_all();
            for vring in &mut self.vrings {
                vring.kick = None;
            }
        }
    }

    fn disable_all(&mut self) {
        self.stop_all();
        for vring in &mut self.vrings {
            vring.is_enabled = false;
        }
    }

    fn reset(&mut self) {
        self.stop_all();
        let count = self.link.offer.queue_pairs.saturating_mul(2);
        self.vrings = (0..count).map(Vring::new).collect();
        self.status = 0;
        self.announcement = None;
    }

    fn set_memory(&mut self, table: &[(RegionInfo, OwnedFd)]) -> Result<(), DeviceFault> {
        self.stop_all();
        self.memory = None;
        self.regions.clear();
        for (info, fd) in table {
            self.regions.push(map(Request::SetMemTable, self.regions.len(), *info, fd)?);
        }
        self.replace_memory(Request::SetMemTable)
    }

    fn add_region(&mut self, info: RegionInfo, fd: &OwnedFd) -> Result<(), DeviceFault> {
        let request = Request::AddMemReg;
        // QEMU has one vhost device for each queue pair, and each of them adds
        // the same regions (seen with QEMU 7.2).
        if self.position_of(info).is_some() {
            return Ok(());
        }
        if self.regions.len() >= REGIONS_MAX {
            let source = MemoryError::TooMany { count: self.regions.len() + 1, max: REGIONS_MAX };
            return Err(DeviceFault::Memory { request, source });
        }
        self.regions.push(map(request, self.regions.len(), info, fd)?);
        self.stop_all();
        self.replace_memory(request)
    }

    fn remove_region(&mut self, info: RegionInfo) -> Result<(), DeviceFault> {
        let request = Request::RemMemReg;
        let Some(position) = self.position_of(info) else {
            let RegionInfo { guest_addr, size, .. } = info;
            return Err(DeviceFault::NoRegion { request, guest_addr, size });
        };
        self.stop_all();
        self.regions.remove(position);
        self.replace_memory(request)
    }

    fn position_of(&self, info: RegionInfo) -> Option<usize> {
        self.regions.iter().position(|region| {
            region.guest_addr() == info.guest_addr
                && region.user_addr() == info.user_addr
                && region.size() == info.size
        })
    }

    /// Makes the regions the memory and starts what can run in it. Every ring
    /// was stopped.
    fn replace_memory(&mut self, request: Request) -> Result<(), DeviceFault> {
        let memory = GuestMemory::new(self.regions.clone())
            .map_err(|source| DeviceFault::Memory { request, source })?;
        self.memory = (!self.regions.is_empty()).then(|| Arc::new(memory));
        self.start_rings(request)
    }

    fn announce(&mut self) {
        let Some(mac) = self.announcement else { return };
        if self.vrings.iter().any(|vring| vring.announce(mac)) {
            self.announcement = None;
        }
    }

    fn config(&self, offset: u32, size: u32, flags: u32) -> Result<Option<Reply>, DeviceFault> {
        let space = self.config_space();
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let to = from.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        let bytes = space.get(from..to).unwrap_or_default().to_vec();
        Ok(Some(Reply::Config { offset, flags, bytes }))
    }

    /// `struct virtio_net_config`: address, status (link up), queue pairs, MTU,
    /// speed and duplex unknown, no receive-side scaling.
    fn config_space(&self) -> [u8; CONFIG_BYTES] {
        let mac = self.link.mac.unwrap_or_default().octets();
        let fields: [&[u8]; 6] = [
            &mac,
            &1_u16.to_le_bytes(),
            &self.link.offer.queue_pairs.to_le_bytes(),
            &self.link.mtu.to_le_bytes(),
            &u32::MAX.to_le_bytes(),
            &[u8::MAX],
        ];
        let mut space = [0; CONFIG_BYTES];
        for (to, from) in space.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        space
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop_all();
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the form `handle` returns")]
fn number(number: u64) -> Result<Option<Reply>, DeviceFault> {
    Ok(Some(Reply::Number(number)))
}

fn check_offered(request: Request, bits: u64, offered: u64) -> Result<(), DeviceFault> {
    match bits & !offered {
        0 => Ok(()),
        bits => Err(DeviceFault::NotOffered { request, bits }),
    }
}

fn map(
    request: Request,
    index: usize,
    info: RegionInfo,
    fd: &OwnedFd,
) -> Result<Arc<Region>, DeviceFault> {
    let RegionInfo { guest_addr, size, user_addr, mmap_offset } = info;
    let spec = RegionSpec { guest_addr, size, user_addr, mmap_offset, fd: fd.as_fd() };
    let region =
        Region::map(index, &spec).map_err(|source| DeviceFault::Memory { request, source })?;
    Ok(Arc::new(region))
}

/// A descriptor that a ring may read or write without waiting: an anonymous
/// inode (an eventfd is one; files, sockets and pipes are not), made not to block.
fn checked(
    request: Request,
    index: u32,
    fd: Option<OwnedFd>,
) -> Result<Option<OwnedFd>, DeviceFault> {
    let Some(fd) = fd else { return Ok(None) };
    let fault = |reason: String| DeviceFault::EventFd { request, index, reason };
    let host = |errno: rustix::io::Errno| fault(format!("cannot be examined: {errno}"));
    let stat = rustix::fs::fstat(&fd).map_err(host)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Unknown {
        return Err(fault("the descriptor is not an eventfd".to_owned()));
    }
    let flags = rustix::fs::fcntl_getfl(&fd).map_err(host)?;
    rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK).map_err(host)?;
    Ok(Some(fd))
}
