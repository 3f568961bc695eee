//! Test bench: a node without a control thread, on a simulated switching plane and in simulated
//! time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use suimon_contract::{Event, EventFilter, HostConfig, VmqQueueStatus, VmqStatus};
use suimon_quantity::{Direction, PortId, QueueId};

use crate::ports::{Port, required_ports};
use crate::shared::Shared;
use crate::state::StoredState;
use crate::testing::{FakeDevices, FakeMembers, FakePlane, MemoryStore, host, shared_only_node};
use crate::{SwitchPlane, placements};

pub(super) const PERIOD: Duration = Duration::from_millis(250);

/// Node and plane, driven by the test.
pub(super) struct Bench {
    pub(super) shared: Shared,
    pub(super) plane: FakePlane,
    /// Working time that each queue demands per [`PERIOD`].
    pub(super) required: BTreeMap<QueueId, Duration>,
}

impl Bench {
    pub(super) fn new(config: &HostConfig) -> Self {
        let plane = FakePlane::default();
        let (devices, members) = (FakeDevices::default(), FakeMembers::default());
        let shared =
            shared_only_node(&plane, &devices, &members, &Arc::new(MemoryStore::default()));
        let mut bench = Self { shared, plane, required: BTreeMap::new() };
        bench.apply(config);
        bench
    }

    /// Executes the VMQ part of a change as the control thread does. Each new port attaches its
    /// first queues.
    pub(super) fn apply(&mut self, config: &HostConfig) {
        let shared = &self.shared;
        assert_eq!(shared.check_vmqs(config), []);
        let required = required_ports(config);
        shared.change_ids(|ids| ids.assign(config, &required));
        self.plane.set_workers(&placements(&config.host)).unwrap();
        shared.publish_vmqs(config);
        for (key, spec) in &required {
            if shared.ports.find(key).is_none() {
                let id = shared.ids().port(key).unwrap();
                shared.ports.insert(Arc::new(Port::new(key.clone(), id, spec.clone())));
                for direction in [Direction::Ingress, Direction::Egress] {
                    self.plane.attach(QueueId { port: id, direction, index: 0 });
                }
            }
        }
        for port in shared.ports.all() {
            if !required.contains_key(&port.key) {
                shared.ports.remove(&port.key);
                for direction in [Direction::Ingress, Direction::Egress] {
                    self.plane.detach(QueueId { port: port.id, direction, index: 0 });
                }
            }
        }
        shared.change_ids(|ids| ids.release(config, &required));
        let revision = shared.desired().revision + 1;
        let config = config.clone();
        shared.set_desired(StoredState { revision, config, file_text: None });
    }

    pub(super) fn port(&self, name: &str) -> PortId {
        let ports = self.shared.ports.all();
        ports.iter().find(|port| port.key.name().as_str() == name).unwrap().id
    }

    /// Returns the queue of frames that a NIC's guest sends.
    pub(super) fn queue(&self, name: &str) -> QueueId {
        QueueId { port: self.port(name), direction: Direction::Ingress, index: 0 }
    }

    /// Sets the demand of a NIC's queue, as a percentage of one worker's time.
    pub(super) fn require(&mut self, name: &str, percent: u32) {
        self.required.insert(self.queue(name), PERIOD * percent / 100);
    }

    /// Advances the time by `periods` and drives VMQ after each one. Returns all events so far.
    pub(super) fn run(&self, periods: u32) -> Vec<Event> {
        for _ in 0..periods {
            self.plane.pass(PERIOD, &self.required);
            let drafts = self.shared.drive_vmqs();
            self.shared.events.append(drafts);
        }
        self.events()
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.shared.events.page(0, usize::MAX, &EventFilter::default()).events
    }

    /// Returns the workers that service the NICs' queues.
    pub(super) fn owners<const N: usize>(&self, names: [&str; N]) -> [u16; N] {
        names.map(|name| self.plane.owner(self.queue(name)))
    }

    pub(super) fn status(&self) -> VmqStatus {
        self.shared.vmq("wan").unwrap()
    }

    pub(super) fn queue_status(&self, queue: &str) -> VmqQueueStatus {
        self.status().queues.into_iter().find(|queue_status| queue_status.queue == queue).unwrap()
    }
}

/// Returns a configuration with an uplink and a switch with these NICs, each with additional keys.
/// `workers` is a list of CPUs or another key of `[host]`.
pub(super) fn lan(workers: &str, vmq: &str, nics: &[(&str, &str)]) -> HostConfig {
    let workers = match workers {
        "" => String::new(),
        key if key.contains('=') => key.to_owned(),
        list => format!("processors = [{list}]"),
    };
    let nics: Vec<String> = nics
        .iter()
        .map(|(name, extra)| {
            format!(
                "[[nic]]\nname = \"{name}\"\nswitch = \"lan\"\nbackend = \"tap\"\n\
                 device = \"{name}\"\n{extra}\n"
            )
        })
        .collect();
    host(&format!(
        "[host]\n{workers}\n[[uplink]]\nname = \"wan\"\ndevice = \"eth0\"\n[uplink.vmq]\n\
         {vmq}\n[[switch]]\nname = \"lan\"\nkind = \"external\"\nuplink = \"wan\"\n{}",
        nics.concat()
    ))
}
