//! One vring of a device: its configuration, and the ring while it runs.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use suimon_eventfd::PeerEventFd;
use suimon_frame::MacAddr;
use suimon_ports::{DetachingQueue, QueueFault};
use suimon_quantity::Direction;
use suimon_ring::{
    DiskRing, GuestMemory, InterruptLine, RarpAnnouncer, RingAddresses, RingFault, RingFeatures,
    RingSetup, RingState, RingTracking, RxRing, TxRing, used_position,
};

use crate::device_tracking::DeviceTracking;
use crate::model::{DeviceModel, DiskModel, NicModel};

/// Maximum duration of one wait of a blocking stop, which is repeated until the ring is detached.
const STOP_EVERY: Duration = Duration::from_secs(1);

/// Source of the driver's kicks.
#[derive(Clone, Debug)]
pub(crate) enum Kick {
    /// Eventfd that the driver writes to.
    Fd(Arc<PeerEventFd>),
    /// No notifications; the ring is polled.
    Polled,
}

/// Properties of a device that the start of any of its rings needs.
pub(crate) struct RingContext<'a> {
    pub(crate) model: &'a DeviceModel,
    pub(crate) memory: &'a Arc<GuestMemory>,
    pub(crate) features: RingFeatures,
    pub(crate) tracking: &'a DeviceTracking,
}

/// State of one vring as the front-end has set it up, and the ring while it runs.
pub(crate) struct Vring {
    index: u16,
    pub(crate) size: u32,
    pub(crate) addresses: Option<RingAddresses>,
    /// Position in the format of `SET_VRING_BASE`.
    pub(crate) base: u32,
    /// Guest-physical address under which writes to the used ring are logged; `None` if they are
    /// not logged.
    pub(crate) log_addr: Option<u64>,
    pub(crate) kick: Option<Kick>,
    pub(crate) is_enabled: bool,
    call: Arc<InterruptLine>,
    error: Arc<InterruptLine>,
    running: Option<Running>,
    /// True if the ring has had a fault since the driver last set it up; it must not start.
    is_broken: bool,
    /// Fault that [`Vring::take_fault`] has not returned yet.
    unreported_fault: Option<RingFault>,
    /// True if the ring that ran last was packed.
    is_packed: bool,
}

struct Running {
    state: Arc<RingState>,
    announcer: Option<Arc<RarpAnnouncer>>,
    /// Pending detachment, once it was requested.
    detaching: Option<Box<dyn DetachingQueue>>,
}

impl Running {
    /// Creates a ring of a NIC and attaches it to the switch.
    fn nic(
        nic: &NicModel,
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingTracking,
    ) -> Result<Self, QueueFault> {
        let id = nic.queue_id(setup.queue);
        Ok(match id.direction {
            Direction::Ingress => {
                let ring = TxRing::with_tracking(memory, setup, records)?;
                let running = Self {
                    state: ring.state(),
                    announcer: Some(ring.announcer()),
                    detaching: None,
                };
                nic.host.attach_source(id, ring.into_source());
                running
            }
            Direction::Egress => {
                let mask = Arc::clone(&nic.mask);
                let ring = RxRing::with_tracking(memory, setup, records, mask)?;
                let running = Self { state: ring.state(), announcer: None, detaching: None };
                nic.host.attach_sink(id, ring.into_sink());
                running
            }
        })
    }

    /// Creates a ring of a disk and attaches it to the disk's host.
    fn disk(
        disk: &DiskModel,
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingTracking,
    ) -> Result<Self, QueueFault> {
        let ring = DiskRing::with_tracking(memory, setup, records, Arc::clone(&disk.properties))?;
        let running = Self { state: ring.state(), announcer: None, detaching: None };
        disk.host.attach(disk.disk, setup.queue, ring.into_queue());
        Ok(running)
    }
}

impl Vring {
    /// Creates an unconfigured vring. A fault of the ring signals the eventfd `faults`.
    pub(crate) fn new(index: u16, faults: &Arc<OwnedFd>) -> Self {
        Self {
            index,
            size: 0,
            addresses: None,
            base: 0,
            log_addr: None,
            kick: None,
            is_enabled: false,
            call: Arc::default(),
            error: Arc::new(InterruptLine::with_observer(Arc::clone(faults))),
            running: None,
            is_broken: false,
            unreported_fault: None,
            is_packed: false,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Returns true if the front-end has configured the ring completely, apart from enabling it.
    pub(crate) fn is_configured(&self) -> bool {
        self.addresses.is_some() && self.size != 0 && self.kick.is_some()
    }

    /// Sets the eventfd for interrupts; `None` disables them.
    pub(crate) fn connect_call(&self, fd: Option<PeerEventFd>) {
        self.call.connect(fd);
    }

    /// Sets the eventfd for fault notifications; `None` disables them.
    pub(crate) fn connect_error(&self, fd: Option<PeerEventFd>) {
        self.error.connect(fd);
    }

    /// Returns true if the ring has had a fault, so that it must not start.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Returns a fault that was not returned before, and marks the ring as broken; `None` if there
    /// is none.
    pub(crate) fn take_fault(&mut self) -> Option<RingFault> {
        self.record_fault();
        self.unreported_fault.take()
    }

    fn record_fault(&mut self) {
        let fault = self.running.as_ref().and_then(|running| running.state.fault());
        if fault.is_some() && !self.is_broken {
            self.is_broken = true;
            self.unreported_fault = fault;
        }
    }

    /// Permits a ring that had a fault to start again, because the driver has stopped it.
    pub(crate) fn clear_fault(&mut self) {
        self.is_broken = false;
    }

    /// Creates the ring and attaches it to its host. Does nothing if its addresses are not set.
    ///
    /// # Errors
    /// The ring cannot run as configured.
    pub(crate) fn start(&mut self, context: &RingContext<'_>) -> Result<(), QueueFault> {
        let Some(addresses) = self.addresses else { return Ok(()) };
        let mut setup = RingSetup {
            queue: self.index,
            size: self.size,
            addresses,
            base: context.features.base_from_vring(self.base),
            features: context.features,
            kick: match &self.kick {
                Some(Kick::Fd(fd)) => Some(Arc::clone(fd)),
                Some(Kick::Polled) | None => None,
            },
            call: Arc::clone(&self.call),
            error: Arc::clone(&self.error),
        };
        let memory = Arc::clone(context.memory);
        if !context.features.packed() {
            setup.base = used_position(&memory, &setup)?;
        }
        let ring = (self.index, self.size);
        let records = context.tracking.ring_tracking(ring, context.features, self.log_addr);
        self.is_packed = context.features.packed();
        self.running = Some(match context.model {
            DeviceModel::Nic(nic) => Running::nic(nic, memory, &setup, records)?,
            DeviceModel::Disk(disk) => Running::disk(disk, memory, &setup, records)?,
        });
        // A process that died may have used buffers without an interrupt. A spurious interrupt is
        // harmless; a missing one stalls the guest.
        self.call.signal();
        Ok(())
    }

    /// Detaches the ring, if it runs, and stores its position. Blocks until the ring is detached.
    pub(crate) fn stop(&mut self, model: &DeviceModel) {
        self.begin_stop(model);
        while !self.finish_stop(STOP_EVERY) {}
    }

    /// Requests that the host detaches the ring, if it runs and this was not requested before. Does
    /// not block.
    pub(crate) fn begin_stop(&mut self, model: &DeviceModel) {
        if let Some(running) = &mut self.running {
            running.detaching.get_or_insert_with(|| model.begin_detach(self.index));
        }
    }

    /// Blocks at most `at_most` until a requested detachment has completed, and stores the ring's
    /// position then. Returns false if it has not completed; true also if none was requested.
    pub(crate) fn finish_stop(&mut self, at_most: Duration) -> bool {
        let detaching = self.running.as_mut().and_then(|running| running.detaching.as_mut());
        let Some(detaching) = detaching else { return true };
        if !detaching.wait(at_most) {
            return false;
        }
        // A fault may have occurred during the wait.
        self.record_fault();
        if let Some(running) = self.running.take() {
            let next = u32::from(running.state.next_avail());
            // All buffers of a packed ring were returned, so both positions are equal.
            self.base = if self.is_packed { next | next << 16 } else { next };
        }
        true
    }

    /// Returns true if the ring has a fault that [`Vring::take_fault`] has not returned.
    pub(crate) fn has_fault(&self) -> bool {
        let fault = self.running.as_ref().and_then(|running| running.state.fault());
        self.unreported_fault.is_some() || (fault.is_some() && !self.is_broken)
    }

    /// Announces the VM's address `mac` through this ring. Returns false if the ring does not run
    /// or is not a transmit ring.
    pub(crate) fn announce(&self, mac: MacAddr) -> bool {
        let announcer = self.running.as_ref().and_then(|running| running.announcer.as_ref());
        announcer.inspect(|announcer| announcer.announce(mac)).is_some()
    }
}
