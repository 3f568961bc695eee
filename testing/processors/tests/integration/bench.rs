//! A data plane whose ports are guests of the test, on real threads that are pinned to CPUs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_forwarding::{ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_ports::{QueueHost, WorkerRuntime};
use suimon_processor_tests::{Receiver, Sender};
use suimon_quantity::{Direction, PortId, QueueId, SwitchId};
use suimon_switch::{DataPlane, PortTopology, Topology};
use suimon_wait::WorkerThreads;

/// Deadline of every condition, generous because the machine may be loaded.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) struct Guest {
    pub(crate) port: PortId,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}

pub(crate) struct Bench {
    pub(crate) plane: DataPlane,
    pub(crate) guests: Vec<Guest>,
    pub(crate) topology: Topology,
}

impl Bench {
    pub(crate) fn new(workers: usize, guests: u32) -> Self {
        let runtime = Arc::new(WorkerThreads);
        let cpus = runtime.allowed_cpus();
        assert!(cpus.len() >= workers, "this test needs {workers} CPUs");
        let plane = DataPlane::start(&cpus[..workers], runtime).unwrap();
        let switch = SwitchId(1);
        let ports = (0..guests).map(|id| PortTopology {
            spec: ForwardingPortSpec::new(PortId(id), switch, PortRole::Nic),
            bandwidth: None,
            storm_limit_fps: None,
            receive_coalescing: true,
        });
        let topology = Topology {
            switches: vec![SwitchSpec::new(switch)],
            ports: ports.collect(),
            teams: Vec::new(),
        };
        plane.publish(topology.clone()).unwrap();
        let guests = (0..guests).map(|id| attach(&plane, PortId(id))).collect();
        Self { plane, guests, topology }
    }

    /// Sends a frame from every guest, so that the switch learns all addresses.
    pub(crate) fn introduce(&self) {
        for guest in 0..self.guests.len() {
            self.guests[guest].sender.send(&frame(guest, 0xff, 0));
        }
        let is_learned = || self.plane.addresses(SwitchId(1)).len() == self.guests.len();
        wait_for("all addresses to be learned", is_learned);
        let others = self.guests.len() - 1;
        for guest in &self.guests {
            let mut seen_count = 0;
            wait_for("the introductions", || {
                seen_count += usize::from(guest.receiver.poll().is_some());
                seen_count == others
            });
        }
        // The counter of sent frames changes after the receiver can see the frame.
        wait_for("the introductions in the counters", || {
            let counted = |guest: &Guest| self.plane.port_counters(guest.port).tx_frames;
            self.guests.iter().all(|guest| counted(guest) == others as u64)
        });
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.plane.stop();
    }
}

pub(crate) fn attach(plane: &DataPlane, port: PortId) -> Guest {
    let (sender, source) = Sender::pair();
    let (receiver, sink) = Receiver::pair();
    plane.attach_source(queue(port, Direction::Ingress), source);
    plane.attach_sink(queue(port, Direction::Egress), sink);
    Guest { port, sender, receiver }
}

pub(crate) fn queue(port: PortId, direction: Direction) -> QueueId {
    QueueId { port, direction, index: 0 }
}

pub(crate) fn mac(guest: usize) -> [u8; 6] {
    if guest == 0xff { [0xff; 6] } else { [2, 0, 0, 0, 0, guest as u8] }
}

pub(crate) fn frame(from: usize, to: usize, number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&mac(to));
    bytes.extend_from_slice(&mac(from));
    bytes.extend_from_slice(&[0x88, 0xb5]);
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.resize(60, 0);
    bytes
}

pub(crate) fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[14], bytes[15], bytes[16], bytes[17]])
}

pub(crate) fn wait_for(description: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < DEADLINE, "waited in vain for {description}");
        suimon_processor_tests::sleep_briefly();
    }
}
