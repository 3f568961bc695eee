//! Messages that concern single rings: setup, start, stop and enablement.

use std::sync::Arc;

use suimon_eventfd::PeerEventFd;
use suimon_ring::{RingAddresses, RingFeatures};

use super::VhostUserDevice;
use super::eventfd::check_eventfd;
use crate::fault::DeviceFault;
use crate::features::protocol;
use crate::message::{FrontEndMessage, VringFd};
use crate::reply::VhostUserReply;
use crate::request::Request;
use crate::vring::{Kick, RingContext, Vring};

impl VhostUserDevice {
    pub(super) fn vring(
        &mut self,
        request: Request,
        index: u32,
    ) -> Result<&mut Vring, DeviceFault> {
        let (count, noun) = (self.vrings.len(), self.link.model.kind_name());
        let vring = usize::try_from(index).ok().and_then(|index| self.vrings.get_mut(index));
        vring.ok_or(DeviceFault::VringIndex { request, index, device_kind: noun, count })
    }

    /// Stops vring `index`, and returns it so that it can be changed. Blocks until the ring is
    /// detached.
    ///
    /// # Errors
    /// The device has no such vring.
    pub(super) fn stop_vring(
        &mut self,
        request: Request,
        index: u32,
    ) -> Result<&mut Vring, DeviceFault> {
        let model = self.link.model.clone();
        let vring = self.vring(request, index)?;
        vring.stop(&model);
        Ok(vring)
    }

    /// Starts every ring that is enabled, completely configured and not running. Starts none while
    /// a ring has a fault or the memory is unknown. `request` is named in errors.
    pub(super) fn start_rings(&mut self, request: Request) -> Result<(), DeviceFault> {
        let Some(memory) = self.memory.memory() else { return Ok(()) };
        if self.vrings.iter().any(Vring::is_broken) {
            return Ok(());
        }
        let features = RingFeatures(self.features);
        // Without protocol features a ring starts enabled.
        let starts_enabled = !features.has(protocol::FEATURES_BIT);
        let link = &self.link;
        let context = RingContext { model: &link.model, memory, features, tracking: &self.records };
        for vring in &mut self.vrings {
            if !vring.is_running() && vring.is_configured() && (vring.is_enabled || starts_enabled)
            {
                vring.start(&context).map_err(|source| DeviceFault::Ring { request, source })?;
            }
        }
        self.announce();
        Ok(())
    }

    /// Sets size, addresses or position of a vring: stops the ring first, and starts it again if it
    /// is completely configured.
    pub(super) fn configure_vring(&mut self, message: &FrontEndMessage) -> Result<(), DeviceFault> {
        let request = match *message {
            FrontEndMessage::SetVringNum { index, size } => {
                self.stop_vring(Request::SetVringNum, index)?.size = size;
                Request::SetVringNum
            }
            FrontEndMessage::SetVringAddr { index, descriptors, used, available, log_addr } => {
                let vring = self.stop_vring(Request::SetVringAddr, index)?;
                vring.addresses = Some(RingAddresses { descriptors, available, used });
                vring.log_addr = log_addr;
                Request::SetVringAddr
            }
            FrontEndMessage::SetVringBase { index, base } => {
                let request = Request::SetVringBase;
                if !RingFeatures(self.features).packed() && base > u32::from(u16::MAX) {
                    return Err(DeviceFault::Base { request, index, base });
                }
                self.stop_vring(request, index)?.base = base;
                request
            }
            _ => return Ok(()),
        };
        self.start_rings(request)
    }

    pub(super) fn set_vring_enabled(
        &mut self,
        index: u32,
        is_enabled: bool,
    ) -> Result<(), DeviceFault> {
        let request = Request::SetVringEnable;
        if self.vring(request, index)?.is_enabled != is_enabled {
            self.stop_vring(request, index)?.is_enabled = is_enabled;
            self.start_rings(request)?;
        }
        Ok(())
    }

    pub(super) fn set_kick(&mut self, vring_fd: VringFd) -> Result<(), DeviceFault> {
        let request = Request::SetVringKick;
        let index = vring_fd.index;
        let fd = check_eventfd(request, vring_fd, PeerEventFd::for_waiting)?;
        let vring = self.stop_vring(request, index)?;
        vring.kick = Some(fd.map_or(Kick::Polled, |fd| Kick::Fd(Arc::new(fd))));
        self.start_rings(request)
    }

    pub(super) fn get_vring_base(
        &mut self,
        index: u32,
    ) -> Result<Option<VhostUserReply>, DeviceFault> {
        let vring = self.stop_vring(Request::GetVringBase, index)?;
        vring.kick = None;
        vring.clear_fault();
        Ok(Some(VhostUserReply::VringState { index, base: vring.base }))
    }

    pub(super) fn disable_all(&mut self) {
        self.stop_all();
        for vring in &mut self.vrings {
            vring.is_enabled = false;
            vring.clear_fault();
        }
    }
}
