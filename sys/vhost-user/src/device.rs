//! One front-end's NIC: what its messages do to the rings. No socket, no thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use suimon_frame::MacAddr;
use suimon_ports::QueueHost;
use suimon_quantity::PortId;
use suimon_ring::{OffloadMask, REGIONS_MAX, RingAddresses, RingFault, RingFeatures};

use crate::backend_channel::BackendChannel;
use crate::config_space::ConfigSpace;
use crate::fault::DeviceFault;
use crate::features::{Offer, check_negotiated, protocol};
use crate::memory_table::{Change, MemoryTable};
use crate::message::{InflightInfo, LogInfo, Message, RegionInfo, VringFd};
use crate::records::Records;
use crate::reply::Reply;
use crate::request::Request;
use crate::vring::{Kick, RingPlace, Vring};

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
    /// An eventfd that becomes readable when a ring meets a fault; then
    /// [`Device::take_fault`] is to be called.
    pub faults: Arc<OwnedFd>,
}

/// One front-end's NIC.
pub struct Device {
    link: DeviceLink,
    features: u64,
    protocol: u64,
    status: u8,
    memory: MemoryTable,
    vrings: Vec<Vring>,
    /// To be announced when a transmit ring runs.
    announcement: Option<MacAddr>,
    channel: Option<BackendChannel>,
    records: Records,
}

impl Device {
    /// A NIC as a new front-end finds it.
    pub fn new(link: DeviceLink) -> Self {
        Self {
            vrings: vrings(&link),
            link,
            features: 0,
            protocol: 0,
            status: 0,
            memory: MemoryTable::default(),
            announcement: None,
            channel: None,
            records: Records::default(),
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

    /// Whether any ring runs.
    pub fn runs(&self) -> bool {
        self.vrings.iter().any(Vring::is_running)
    }

    /// The descriptor that becomes readable when a ring met a fault.
    pub fn fault_fd(&self) -> BorrowedFd<'_> {
        self.link.faults.as_fd()
    }

    /// A ring's fault, if there is one: all rings of the NIC are taken back, and
    /// none starts again before the front-end has stopped the broken one in order
    /// or reset the device, as it does when the guest's driver starts anew.
    pub fn take_fault(&mut self) -> Option<RingFault> {
        let _ = rustix::io::read(&*self.link.faults, &mut [0; 8]);
        let fault = self.vrings.iter_mut().find_map(Vring::take_fault)?;
        self.stop_all();
        // One that was met at the same time has the same cause.
        for vring in &mut self.vrings {
            let _ = vring.take_fault();
        }
        Some(fault)
    }

    /// The largest IP packet the port carries has changed. A front-end that keeps
    /// a copy of configuration space is told to read it again.
    pub fn set_mtu(&mut self, mtu: u16) {
        if self.link.mtu == mtu {
            return;
        }
        self.link.mtu = mtu;
        let has_config = self.protocol & protocol::CONFIG != 0;
        let Some(channel) = self.channel.as_ref().filter(|_| has_config) else { return };
        if let Err(error) = channel.config_changed() {
            tracing::warn!(port = self.link.port.0, %error, "the front-end cannot be told");
        }
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
            M::GetConfig { offset, size, flags } => {
                let bytes = self.config_space().read(offset, size);
                return Ok(Some(Reply::Config { offset, flags, bytes }));
            }
            M::SetOwner => {}
            M::SetFeatures(bits) => self.set_features(bits)?,
            M::SetProtocolFeatures(bits) => {
                let offered = self.link.offer.protocol;
                check_offered(Request::SetProtocolFeatures, bits, offered)?;
                self.protocol = bits;
            }
            M::SetBackendReqFd(socket) => self.set_channel(socket)?,
            M::SetStatus(status) => self.set_status(status),
            M::ResetOwner => self.disable_all(),
            M::ResetDevice => self.reset(),
            M::SetMemTable(table) => {
                self.stop_all();
                self.memory.replace(&table)?;
                self.start_rings(Request::SetMemTable)?;
            }
            M::AddMemReg(info, fd) => self.change_memory(Request::AddMemReg, info, Some(&fd))?,
            M::RemMemReg(info) => self.change_memory(Request::RemMemReg, info, None)?,
            M::SetVringNum { .. } | M::SetVringAddr { .. } | M::SetVringBase { .. } => {
                self.describe(&message)?;
            }
            M::SetVringEnable { index, enabled } => self.enable(index, enabled)?,
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
            M::SetLogBase(info, fd) => return self.set_log(info, &fd),
            // Front-ends look at the log when they want to; none waits for this.
            M::SetLogFd(fd) => {
                check_negotiated(Request::SetLogFd, self.protocol)?;
                checked(Request::SetLogFd, 0, fd)?;
            }
            M::GetInflightFd(info) => {
                check_negotiated(Request::GetInflightFd, self.protocol)?;
                return Records::new_inflight(info, RingFeatures(self.features)).map(Some);
            }
            M::SetInflightFd(info, fd) => self.set_inflight(info, &fd)?,
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
        let Some(memory) = self.memory.memory() else { return Ok(()) };
        if self.vrings.iter().any(Vring::is_broken) {
            return Ok(());
        }
        let features = RingFeatures(self.features);
        // Without protocol features a ring starts enabled.
        let starts_enabled = !features.has(protocol::FEATURES_BIT);
        let link = &self.link;
        let place = RingPlace {
            port: link.port,
            host: &*link.host,
            memory,
            features,
            mask: &link.mask,
            records: &self.records,
        };
        for vring in &mut self.vrings {
            if !vring.is_running() && vring.is_described() && (vring.is_enabled || starts_enabled) {
                vring.start(&place).map_err(|source| DeviceFault::Ring { request, source })?;
            }
        }
        self.announce();
        Ok(())
    }

    fn set_features(&mut self, bits: u64) -> Result<(), DeviceFault> {
        check_offered(Request::SetFeatures, bits, self.link.offer.features)?;
        if bits != self.features {
            self.stop_all();
            self.tell_of_short_log();
            self.features = bits;
        }
        self.start_rings(Request::SetFeatures)
    }

    /// A front-end whose log is too short has copied its guest incompletely.
    fn tell_of_short_log(&self) {
        let beyond = self.records.beyond_log();
        if beyond > 0 {
            tracing::warn!(
                port = self.link.port.0,
                beyond,
                "writes behind the end of the front-end's log of written pages; the guest's \
                 memory may arrive incomplete"
            );
        }
    }

    fn set_channel(&mut self, socket: OwnedFd) -> Result<(), DeviceFault> {
        check_negotiated(Request::SetBackendReqFd, self.protocol)?;
        let channel = BackendChannel::new(socket);
        self.channel = Some(channel.map_err(|reason| DeviceFault::Channel { reason })?);
        Ok(())
    }

    /// The answer is empty: front-ends wait for one, and expect nothing in it.
    fn set_log(&mut self, info: LogInfo, fd: &OwnedFd) -> Result<Option<Reply>, DeviceFault> {
        let request = Request::SetLogBase;
        check_negotiated(request, self.protocol)?;
        self.stop_all();
        self.records.set_log(info, fd)?;
        self.start_rings(request)?;
        Ok(Some(Reply::Done))
    }

    fn set_inflight(&mut self, info: InflightInfo, fd: &OwnedFd) -> Result<(), DeviceFault> {
        let request = Request::SetInflightFd;
        check_negotiated(request, self.protocol)?;
        self.stop_all();
        self.records.set_inflight(info, fd, RingFeatures(self.features))?;
        self.start_rings(request)
    }

    /// Size, addresses or position of a vring.
    fn describe(&mut self, message: &Message) -> Result<(), DeviceFault> {
        let request = match *message {
            Message::SetVringNum { index, size } => {
                self.stopped(Request::SetVringNum, index)?.size = size;
                Request::SetVringNum
            }
            Message::SetVringAddr { index, descriptors, used, available, log_addr } => {
                let vring = self.stopped(Request::SetVringAddr, index)?;
                vring.addresses = Some(RingAddresses { descriptors, available, used });
                vring.log_addr = log_addr;
                Request::SetVringAddr
            }
            Message::SetVringBase { index, base } => {
                let request = Request::SetVringBase;
                if !RingFeatures(self.features).packed() && base > u32::from(u16::MAX) {
                    return Err(DeviceFault::Base { request, index, base });
                }
                self.stopped(request, index)?.base = base;
                request
            }
            _ => return Ok(()),
        };
        self.start_rings(request)
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
        vring.repair();
        Ok(Some(Reply::VringState { index, base: vring.base }))
    }

    fn set_status(&mut self, status: u8) {
        self.status = status;
        if status == 0 {
            self.stop_all();
            for vring in &mut self.vrings {
                vring.kick = None;
                vring.repair();
            }
            self.records.reset();
        }
    }

    fn disable_all(&mut self) {
        self.stop_all();
        for vring in &mut self.vrings {
            vring.is_enabled = false;
            vring.repair();
        }
    }

    fn reset(&mut self) {
        self.stop_all();
        self.vrings = vrings(&self.link);
        self.status = 0;
        self.announcement = None;
        self.records.reset();
    }

    /// Adds the region with this file, or removes it.
    fn change_memory(
        &mut self,
        request: Request,
        info: RegionInfo,
        fd: Option<&OwnedFd>,
    ) -> Result<(), DeviceFault> {
        let change = match fd {
            Some(fd) => self.memory.add(info, fd)?,
            None => self.memory.remove(info)?,
        };
        if change == Change::New {
            self.stop_all();
            self.start_rings(request)?;
        }
        Ok(())
    }

    fn announce(&mut self) {
        let Some(mac) = self.announcement else { return };
        if self.vrings.iter().any(|vring| vring.announce(mac)) {
            self.announcement = None;
        }
    }

    fn config_space(&self) -> ConfigSpace {
        let DeviceLink { mac, mtu, offer, .. } = self.link;
        ConfigSpace { mac, queue_pairs: offer.queue_pairs, mtu }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stop_all();
    }
}

fn vrings(link: &DeviceLink) -> Vec<Vring> {
    let count = link.offer.queue_pairs.saturating_mul(2);
    (0..count).map(|index| Vring::new(index, &link.faults)).collect()
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
