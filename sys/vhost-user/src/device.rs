//! State of a device for one front-end, and the effect of the front-end's messages on its rings.
//! Uses no socket and no thread.

mod eventfd;
mod rings;
mod stops;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use suimon_frame::MacAddr;
use suimon_ring::{REGIONS_MAX, RingFault, RingFeatures};
use virtio_bindings::virtio_blk::VIRTIO_BLK_F_CONFIG_WCE;

use crate::backend_channel::BackendChannel;
use crate::device_tracking::DeviceTracking;
use crate::fault::DeviceFault;
use crate::features::{FeatureOffer, check_negotiated, protocol};
use crate::memory_table::{MemoryChange, MemoryTable};
use crate::message::{FrontEndMessage, InflightInfo, LogInfo, RegionInfo, VringFd};
use crate::model::DeviceModel;
use crate::reply::VhostUserReply;
use crate::request::Request;
use crate::vring::Vring;

use eventfd::check_signal_eventfd;
pub use stops::RingSet;

/// Properties of a device and the features that it offers.
#[derive(Clone)]
pub struct DeviceParameters {
    /// NIC or disk that the device belongs to.
    pub model: DeviceModel,
    /// Features and queues to offer.
    pub offer: FeatureOffer,
    /// Eventfd that becomes readable when a ring has a fault. Then call
    /// [`VhostUserDevice::take_fault`].
    pub fault_eventfd: Arc<OwnedFd>,
}

/// Device as one front-end has configured it.
pub struct VhostUserDevice {
    link: DeviceParameters,
    features: u64,
    protocol: u64,
    status: u8,
    memory: MemoryTable,
    vrings: Vec<Vring>,
    /// MAC address of the guest, to be announced when a transmit ring runs (`SEND_RARP`).
    announcement: Option<MacAddr>,
    channel: Option<BackendChannel>,
    records: DeviceTracking,
    /// Number of writes beyond the end of a log of written pages that has ended; see
    /// [`take_log_overruns`](Self::take_log_overruns).
    log_overruns: Option<u64>,
}

impl VhostUserDevice {
    /// Creates a device in its initial state, for a new front-end.
    pub fn new(link: DeviceParameters) -> Self {
        Self {
            vrings: vrings(&link),
            link,
            features: 0,
            protocol: 0,
            status: 0,
            memory: MemoryTable::default(),
            announcement: None,
            channel: None,
            records: DeviceTracking::default(),
            log_overruns: None,
        }
    }

    /// Returns the virtio features that the front-end has acknowledged.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Returns true if acknowledgements (`REPLY_ACK`) were negotiated.
    pub fn has_reply_ack(&self) -> bool {
        self.protocol & protocol::REPLY_ACK != 0
    }

    /// Returns the number of queue pairs of a NIC of which both rings run, or the number of running
    /// queues of a disk.
    pub fn running_queues(&self) -> u16 {
        let pairs = self.vrings.chunks_exact(usize::from(self.link.model.vrings_per_queue()));
        let running = pairs.filter(|pair| pair.iter().all(Vring::is_running)).count();
        u16::try_from(running).unwrap_or(u16::MAX)
    }

    /// Returns true if at least one ring runs.
    pub fn has_running_ring(&self) -> bool {
        self.vrings.iter().any(Vring::is_running)
    }

    /// Returns true if the front-end has passed a channel for back-end requests.
    pub fn has_backend_channel(&self) -> bool {
        self.channel.is_some()
    }

    /// Returns the descriptor that becomes readable when a ring has a fault.
    pub fn fault_fd(&self) -> BorrowedFd<'_> {
        self.link.fault_eventfd.as_fd()
    }

    /// Returns the fault of a ring, and detaches all rings of the device; `None` if there is no new
    /// fault. No ring starts again before the front-end has stopped the faulty ring or reset the
    /// device, as it does when the guest's driver is reinitialised. Blocks until all rings are
    /// detached.
    pub fn take_fault(&mut self) -> Option<RingFault> {
        let _ = rustix::io::read(&*self.link.fault_eventfd, &mut [0; 8]);
        let fault = self.vrings.iter_mut().find_map(Vring::take_fault)?;
        self.stop_all();
        // Faults detected at the same time have the same cause.
        for vring in &mut self.vrings {
            let _ = vring.take_fault();
        }
        Some(fault)
    }

    /// Changes the maximum size of an IP packet, in bytes. Notifies a front-end that caches
    /// configuration space.
    pub fn set_mtu(&mut self, mtu: u16) {
        let DeviceModel::Nic(nic) = &mut self.link.model else { return };
        if nic.mtu != mtu {
            nic.mtu = mtu;
            self.notify_config_changed();
        }
    }

    /// Notifies the front-end, if it caches configuration space, that the space has changed.
    pub fn notify_config_changed(&self) {
        let has_config = self.protocol & protocol::CONFIG != 0;
        let Some(channel) = self.channel.as_ref().filter(|_| has_config) else { return };
        if let Err(error) = channel.notify_config_changed() {
            let device = self.link.model.name();
            tracing::warn!(%device, %error, "cannot notify the front-end");
        }
    }

    /// Executes a message. Returns the reply that the request always has; the caller sends an
    /// acknowledgement if one is required. Blocks until the rings that the message stops are
    /// detached.
    ///
    /// # Errors
    /// The message was not executed; see [`DeviceFault::is_fatal`].
    pub fn handle(
        &mut self,
        message: FrontEndMessage,
    ) -> Result<Option<VhostUserReply>, DeviceFault> {
        use FrontEndMessage as M;
        match message {
            M::GetFeatures => return number(self.link.offer.features),
            M::GetProtocolFeatures => return number(self.link.offer.protocol),
            M::GetQueueNum => return number(u64::from(self.link.offer.queue_pairs)),
            M::GetMaxMemSlots => return number(REGIONS_MAX as u64),
            M::GetStatus => return number(u64::from(self.status)),
            M::GetVringBase { index } => return self.get_vring_base(index),
            M::GetConfig { offset, size, flags } => {
                let queues = self.link.offer.queue_pairs;
                let bytes = self.link.model.read_config(queues, offset, size);
                return Ok(Some(VhostUserReply::Config { offset, flags, bytes }));
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
                self.configure_vring(&message)?;
            }
            M::SetVringEnable { index, enabled } => self.set_vring_enabled(index, enabled)?,
            M::SetVringKick(vring_fd) => self.set_kick(vring_fd)?,
            M::SetVringCall(vring_fd) => {
                let index = vring_fd.index;
                let fd = check_signal_eventfd(Request::SetVringCall, vring_fd)?;
                self.vring(Request::SetVringCall, index)?.connect_call(fd);
            }
            M::SetVringErr(vring_fd) => {
                let index = vring_fd.index;
                let fd = check_signal_eventfd(Request::SetVringErr, vring_fd)?;
                self.vring(Request::SetVringErr, index)?.connect_error(fd);
            }
            M::SendRarp(mac) => {
                self.announcement = Some(mac);
                self.announce();
            }
            M::NetSetMtu(mtu) => self.check_mtu(mtu)?,
            M::SetConfig { offset, bytes } => {
                let is_writable = RingFeatures(self.features).has(VIRTIO_BLK_F_CONFIG_WCE);
                if !is_writable || !self.link.model.write_config(offset, &bytes) {
                    return Err(DeviceFault::ReadOnlyConfig { offset, bytes: bytes.len() });
                }
            }
            M::SetLogBase(info, fd) => return self.set_log(info, &fd),
            // Front-ends read the log without being notified, so the descriptor is checked and
            // closed.
            M::SetLogFd(fd) => {
                check_negotiated(Request::SetLogFd, self.protocol)?;
                check_signal_eventfd(Request::SetLogFd, VringFd { index: 0, fd })?;
            }
            M::GetInflightFd(info) => {
                check_negotiated(Request::GetInflightFd, self.protocol)?;
                return DeviceTracking::new_inflight(info, RingFeatures(self.features)).map(Some);
            }
            M::SetInflightFd(info, fd) => self.set_inflight(info, &fd)?,
        }
        Ok(None)
    }

    /// Detaches all rings. Blocks until all of them are detached.
    pub fn stop_all(&mut self) {
        self.vrings.iter_mut().for_each(|vring| vring.begin_stop(&self.link.model));
        for vring in &mut self.vrings {
            vring.stop(&self.link.model);
        }
    }

    fn set_features(&mut self, bits: u64) -> Result<(), DeviceFault> {
        check_offered(Request::SetFeatures, bits, self.link.offer.features)?;
        if bits != self.features {
            self.stop_all();
            self.log_overruns =
                Some(self.records.log_out_of_range_writes()).filter(|writes| *writes > 0);
            self.features = bits;
        }
        self.start_rings(Request::SetFeatures)
    }

    /// Returns the number of writes beyond the end of a log of written pages that has ended since
    /// the last call; `None` if there were none.
    pub fn take_log_overruns(&mut self) -> Option<u64> {
        self.log_overruns.take()
    }

    fn set_channel(&mut self, socket: OwnedFd) -> Result<(), DeviceFault> {
        check_negotiated(Request::SetBackendReqFd, self.protocol)?;
        let channel = BackendChannel::new(socket);
        self.channel = Some(channel.map_err(|reason| DeviceFault::Channel { reason })?);
        Ok(())
    }

    /// Sets the log of written pages. Returns an empty reply: front-ends wait for a reply without
    /// payload.
    fn set_log(
        &mut self,
        info: LogInfo,
        fd: &OwnedFd,
    ) -> Result<Option<VhostUserReply>, DeviceFault> {
        let request = Request::SetLogBase;
        check_negotiated(request, self.protocol)?;
        self.stop_all();
        self.records.set_log(info, fd)?;
        self.start_rings(request)?;
        Ok(Some(VhostUserReply::Done))
    }

    fn set_inflight(&mut self, info: InflightInfo, fd: &OwnedFd) -> Result<(), DeviceFault> {
        let request = Request::SetInflightFd;
        check_negotiated(request, self.protocol)?;
        self.stop_all();
        self.records.set_inflight(info, fd, RingFeatures(self.features))?;
        self.start_rings(request)
    }

    fn set_status(&mut self, status: u8) {
        self.status = status;
        if status == 0 {
            self.stop_all();
            for vring in &mut self.vrings {
                vring.kick = None;
                vring.clear_fault();
            }
            self.records.reset();
            self.link.model.reset();
        }
    }

    fn reset(&mut self) {
        self.stop_all();
        self.vrings = vrings(&self.link);
        self.status = 0;
        self.announcement = None;
        self.records.reset();
        self.link.model.reset();
    }

    /// Adds the memory region with the file `fd`, or removes the region if `fd` is `None`.
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
        if change == MemoryChange::NewMemory {
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

    fn check_mtu(&self, mtu: u64) -> Result<(), DeviceFault> {
        let DeviceModel::Nic(nic) = &self.link.model else {
            let (request, bit) = (Request::NetSetMtu, protocol::NET_MTU.trailing_zeros());
            return Err(DeviceFault::NotNegotiated { request, bit });
        };
        let max = nic.mtu;
        if mtu < 68 || mtu > u64::from(max) {
            return Err(DeviceFault::Mtu { mtu, max });
        }
        Ok(())
    }
}

impl Drop for VhostUserDevice {
    fn drop(&mut self) {
        self.stop_all();
    }
}

fn vrings(link: &DeviceParameters) -> Vec<Vring> {
    let count = link.model.vrings(link.offer.queue_pairs);
    (0..count).map(|index| Vring::new(index, &link.fault_eventfd)).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "the form `handle` returns")]
fn number(number: u64) -> Result<Option<VhostUserReply>, DeviceFault> {
    Ok(Some(VhostUserReply::Number(number)))
}

fn check_offered(request: Request, bits: u64, offered: u64) -> Result<(), DeviceFault> {
    match bits & !offered {
        0 => Ok(()),
        bits => Err(DeviceFault::NotOffered { request, bits }),
    }
}
