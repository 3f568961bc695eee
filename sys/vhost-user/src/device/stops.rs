//! Determines the rings that a message stops, and detaches them before the message is executed.
//!
//! [`VhostUserDevice::handle`] blocks until the rings that it stops are detached. The ring of a
//! disk whose store has stalled is only detached when the store responds. Callers that must not
//! block detach the rings first, with [`VhostUserDevice::try_stop`].

use std::time::{Duration, Instant};

use suimon_ring::RingFeatures;

use super::VhostUserDevice;
use crate::features::check_negotiated;
use crate::message::FrontEndMessage;
use crate::model::DeviceModel;
use crate::request::Request;
use crate::vring::Vring;

/// Set of rings of a device to detach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingSet {
    /// Empty set: no ring is stopped.
    None,
    /// The ring with this index, if the device has it.
    One(u32),
    /// Every ring of the device.
    All,
}

impl RingSet {
    fn has(self, index: usize) -> bool {
        match self {
            Self::None => false,
            Self::One(number) => usize::try_from(number) == Ok(index),
            Self::All => true,
        }
    }

    const fn all_if(is_so: bool) -> Self {
        if is_so { Self::All } else { Self::None }
    }
}

impl VhostUserDevice {
    /// Returns the rings that [`handle`](Self::handle) will detach when it executes the message.
    pub fn rings_to_stop(&self, message: &FrontEndMessage) -> RingSet {
        use FrontEndMessage as M;
        let is_negotiated = |request| check_negotiated(request, self.protocol).is_ok();
        match *message {
            M::SetFeatures(bits) => {
                RingSet::all_if(bits & !self.link.offer.features == 0 && bits != self.features)
            }
            M::SetStatus(status) => RingSet::all_if(status == 0),
            M::ResetOwner | M::ResetDevice | M::SetMemTable(_) => RingSet::All,
            M::AddMemReg(info, _) => RingSet::all_if(self.memory.is_changed_by_adding(info)),
            M::RemMemReg(info) => RingSet::all_if(self.memory.is_changed_by_removing(info)),
            M::SetLogBase(..) => RingSet::all_if(is_negotiated(Request::SetLogBase)),
            M::SetInflightFd(..) => RingSet::all_if(is_negotiated(Request::SetInflightFd)),
            M::SetVringNum { index, .. }
            | M::SetVringAddr { index, .. }
            | M::GetVringBase { index } => RingSet::One(index),
            M::SetVringKick(ref vring_fd) => RingSet::One(vring_fd.index),
            M::SetVringBase { index, base } => {
                let is_packed = RingFeatures(self.features).packed();
                match is_packed || base <= u32::from(u16::MAX) {
                    true => RingSet::One(index),
                    false => RingSet::None,
                }
            }
            M::SetVringEnable { index, enabled } => {
                let vring = usize::try_from(index).ok().and_then(|index| self.vrings.get(index));
                match vring.is_some_and(|vring| vring.is_enabled != enabled) {
                    true => RingSet::One(index),
                    false => RingSet::None,
                }
            }
            _ => RingSet::None,
        }
    }

    /// Returns the rings that [`take_fault`](Self::take_fault) will detach.
    pub fn rings_to_detach(&self) -> RingSet {
        RingSet::all_if(self.vrings.iter().any(Vring::has_fault))
    }

    /// Returns true if any of these rings runs.
    pub fn is_any_running(&self, stops: RingSet) -> bool {
        let mut rings = self.vrings.iter().enumerate();
        rings.any(|(index, vring)| stops.has(index) && vring.is_running())
    }

    /// Returns how many of these rings run and are serviced by the switch: 0 for a disk.
    pub fn running_switch_rings(&self, stops: RingSet) -> usize {
        let DeviceModel::Nic(_) = &self.link.model else { return 0 };
        let rings = self.vrings.iter().enumerate();
        rings.filter(|(index, vring)| stops.has(*index) && vring.is_running()).count()
    }

    /// Detaches these rings. Blocks at most `at_most`. Returns true if none of them runs any more;
    /// otherwise the caller must call again.
    pub fn try_stop(&mut self, stops: RingSet, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        let model = &self.link.model;
        let rings = self.vrings.iter_mut().enumerate();
        let mut stopping: Vec<&mut Vring> =
            rings.filter(|(index, _)| stops.has(*index)).map(|(_, vring)| vring).collect();
        // All rings are requested from their host before the first wait, so that they are detached
        // in parallel.
        stopping.iter_mut().for_each(|vring| vring.begin_stop(model));
        let remaining = || deadline.saturating_duration_since(Instant::now());
        stopping.into_iter().all(|vring| vring.finish_stop(remaining()))
    }
}
