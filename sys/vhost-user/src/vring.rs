//! One vring of a device: what the front-end has said of it, and the ring while
//! it runs.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use suimon_frame::MacAddr;
use suimon_ports::{PortFault, QueueHost};
use suimon_quantity::{Direction, PortId, QueueId};
use suimon_ring::{
    Announcer, CallLine, GuestMemory, OffloadMask, RingAddresses, RingFeatures, RingSetup,
    RingState, RxRing, TxRing,
};

/// How the driver's kicks arrive.
#[derive(Clone, Debug)]
pub(crate) enum Kick {
    /// On this descriptor.
    Fd(Arc<OwnedFd>),
    /// Never; the ring is polled.
    Polled,
}

/// A vring. Even ones receive (egress of the switch), odd ones transmit.
pub(crate) struct Vring {
    index: u16,
    pub(crate) size: u32,
    pub(crate) addresses: Option<RingAddresses>,
    pub(crate) base: u16,
    pub(crate) kick: Option<Kick>,
    pub(crate) is_enabled: bool,
    call: Arc<CallLine>,
    error: Arc<CallLine>,
    running: Option<Running>,
}

struct Running {
    state: Arc<RingState>,
    announcer: Option<Arc<Announcer>>,
}

impl Vring {
    pub(crate) fn new(index: u16) -> Self {
        Self {
            index,
            size: 0,
            addresses: None,
            base: 0,
            kick: None,
            is_enabled: false,
            call: Arc::default(),
            error: Arc::default(),
            running: None,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether everything is known that the ring needs, besides memory.
    pub(crate) fn is_described(&self) -> bool {
        self.addresses.is_some() && self.size != 0 && self.kick.is_some()
    }

    /// From now on interrupts go here.
    pub(crate) fn connect_call(&self, fd: Option<OwnedFd>) {
        self.call.connect(fd);
    }

    /// From now on a fault is told here.
    pub(crate) fn connect_error(&self, fd: Option<OwnedFd>) {
        self.error.connect(fd);
    }

    /// Hands the ring to the host.
    pub(crate) fn start(
        &mut self,
        port: PortId,
        host: &dyn QueueHost,
        memory: &Arc<GuestMemory>,
        features: RingFeatures,
        mask: &Arc<OffloadMask>,
    ) -> Result<(), PortFault> {
        let Some(addresses) = self.addresses else { return Ok(()) };
        let setup = RingSetup {
            queue: self.index,
            size: self.size,
            addresses,
            base: self.base,
            features,
            kick: match &self.kick {
                Some(Kick::Fd(fd)) => Some(Arc::clone(fd)),
                Some(Kick::Polled) | None => None,
            },
            call: Arc::clone(&self.call),
            error: Arc::clone(&self.error),
        };
        let id = self.queue_id(port);
        let memory = Arc::clone(memory);
        self.running = Some(match id.direction {
            Direction::Ingress => {
                let ring = TxRing::new(memory, &setup)?;
                let running = Running { state: ring.state(), announcer: Some(ring.announcer()) };
                host.attach_source(id, Box::new(ring));
                running
            }
            Direction::Egress => {
                let ring = RxRing::new(memory, &setup, Arc::clone(mask))?;
                let running = Running { state: ring.state(), announcer: None };
                host.attach_sink(id, Box::new(ring));
                running
            }
        });
        // A device that died may have used buffers without saying so; one
        // interrupt too many is harmless, one too few stops the guest.
        self.call.ring();
        Ok(())
    }

    /// Takes the ring back, if it runs, and remembers where it stands.
    pub(crate) fn stop(&mut self, port: PortId, host: &dyn QueueHost) {
        if let Some(running) = self.running.take() {
            host.detach(self.queue_id(port));
            self.base = running.state.next_avail();
        }
    }

    /// Announces the VM through this ring. `false` if it does not run or cannot.
    pub(crate) fn announce(&self, mac: MacAddr) -> bool {
        let announcer = self.running.as_ref().and_then(|running| running.announcer.as_ref());
        announcer.inspect(|announcer| announcer.announce(mac)).is_some()
    }

    fn queue_id(&self, port: PortId) -> QueueId {
        let direction = if self.index % 2 == 0 { Direction::Egress } else { Direction::Ingress };
        QueueId { port, direction, index: self.index / 2 }
    }
}
