//! Harness for teams of a host without threads, in simulated time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use suimon_contract::{Event, EventFilter, HostConfig, TeamMemberState, TeamStatus, validate};
use suimon_frame::{Frame, MacAddr};
use suimon_ports::LinkProperties;
use suimon_quantity::{PortId, Time};

use super::driver::{PollResult, TeamDriver};
use super::job::Job;
use crate::command::Command;
use crate::ports::{Devices, Port, required_ports};
use crate::shared::Shared;
use crate::state::StoredState;
use crate::testing::{
    FakeDevices, FakeMembers, FakePlane, LINK, MemoryStore, host, shared_only_node,
};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const DOWN: LinkProperties = LinkProperties {
    is_up: false,
    speed: suimon_ports::LinkSpeed { mbps: None, full_duplex: None },
};
/// Capacity of the worker's queue.
pub(crate) const JOBS_MAX: usize = 1000;
/// First pause before a socket is opened again.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// Returns a configuration with a switch, a team of `members` whose devices have the same names,
/// and two NICs.
pub(crate) fn with_team(members: &[&str], keys: &str) -> HostConfig {
    let mut text = format!(
        "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"both\"\n\
         [[team]]\nname = \"both\"\nmembers = {members:?}\n{keys}\n"
    );
    for member in members {
        text.push_str(&format!("[[uplink]]\nname = \"{member}\"\ndevice = \"{member}\"\n"));
    }
    for (nic, mac) in [("web", "02:00:00:00:00:01"), ("db", "02:00:00:00:00:02")] {
        text.push_str(&format!(
            "[[nic]]\nname = \"{nic}\"\nswitch = \"wan\"\nbackend = \"tap\"\nmac = \"{mac}\"\n"
        ));
    }
    host(&text)
}

pub(crate) struct Bench {
    pub(crate) shared: Arc<Shared>,
    pub(crate) fakes: FakeDevices,
    pub(crate) members: FakeMembers,
    pub(crate) plane: FakePlane,
    devices: Devices,
    driver: TeamDriver,
    jobs: Receiver<Job>,
    _commands: Receiver<Command>,
    pub(crate) now: Time,
}

impl Bench {
    pub(crate) fn new(config: &HostConfig) -> Self {
        let mut bench = Self::empty();
        bench.apply(config);
        bench
    }

    pub(crate) fn empty() -> Self {
        let (fakes, members, plane) =
            (FakeDevices::default(), FakeMembers::default(), FakePlane::default());
        let store = Arc::new(MemoryStore::default());
        let shared = Arc::new(shared_only_node(&plane, &fakes, &members, &store));
        let (commands, _commands) = sync_channel(1000);
        let devices = Devices::load(shared.clone(), store, commands, RETRY).unwrap();
        let (sender, jobs) = sync_channel(JOBS_MAX);
        let driver = TeamDriver::new(shared.clone(), RETRY, sender);
        let now = Time::from_ns(1_000_000_000_000);
        plane.set_now(now);
        Self { shared, fakes, members, plane, devices, driver, jobs, _commands, now }
    }

    /// Applies a configuration like the control thread.
    pub(crate) fn apply(&mut self, config: &HostConfig) {
        self.try_apply(config).unwrap();
    }

    pub(crate) fn try_apply(&mut self, config: &HostConfig) -> Result<(), String> {
        validate(config).unwrap();
        let required = required_ports(config);
        self.shared.change_ids(|ids| ids.assign(config, &required));
        self.shared.publish_tables(config).map_err(|error| error.message)?;
        for (key, spec) in &required {
            if self.shared.ports.find(key).is_none() {
                let id = self.shared.ids().port(key).unwrap();
                let port = Arc::new(Port::new(key.clone(), id, spec.clone()));
                self.shared.ports.insert(port.clone());
                if let Err(error) = self.devices.open(&port) {
                    self.devices.fail(&port, error.to_string());
                }
            }
        }
        for port in self.shared.ports.all() {
            if !required.contains_key(&port.key) {
                self.shared.ports.remove(&port.key);
                Devices::close(&port);
            }
        }
        self.shared.publish_tables(config).map_err(|error| error.message)?;
        let desired = StoredState { config: config.clone(), ..StoredState::default() };
        self.shared.set_desired(desired);
        self.shared.change_ids(|ids| ids.release(config, &required));
        self.settle();
        Ok(())
    }

    /// Executes everything that is due now, of the team thread and its worker.
    pub(crate) fn settle(&mut self) {
        self.settle_woken(&BTreeSet::new());
    }

    pub(crate) fn settle_woken(&mut self, readable: &BTreeSet<PortId>) {
        for _ in 0..50 {
            let due = self.poll(readable);
            let jobs: Vec<Job> = self.jobs.try_iter().collect();
            let is_idle = jobs.is_empty() && due.is_none_or(|due| due > self.now);
            jobs.into_iter().for_each(|job| job.run(&self.shared));
            if is_idle {
                return;
            }
        }
        panic!("there is no end to what is due");
    }

    /// Removes the jobs that the worker has not executed, and returns their number.
    pub(crate) fn remove_jobs(&mut self) -> usize {
        self.jobs.try_iter().count()
    }

    /// Executes one iteration of the team thread, and returns the deadline of the next.
    pub(crate) fn poll(&mut self, readable: &BTreeSet<PortId>) -> Option<Time> {
        match self.driver.poll(readable) {
            PollResult::Until(due) => due,
            PollResult::Stop => panic!("nobody asked it to stop"),
        }
    }

    /// Advances time and executes everything that becomes due.
    pub(crate) fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.settle();
            let due = self.poll(&BTreeSet::new()).unwrap_or(Time::NEVER);
            self.now = due.min(end);
            self.plane.set_now(self.now);
            if self.now == end {
                return self.settle();
            }
        }
    }

    /// Stops the team thread and blocks until it has ended.
    pub(crate) fn stop(&mut self) {
        self.shared.teams.inbox().is_stop_requested = true;
        assert_eq!(self.driver.poll(&BTreeSet::new()), PollResult::Stop);
    }

    pub(crate) fn link(&mut self, device: &str, link: LinkProperties) {
        self.fakes.set_link(device, link);
        self.settle();
    }

    pub(crate) fn link_up(&mut self, device: &str) {
        self.link(device, LINK);
    }

    pub(crate) fn down(&mut self, device: &str) {
        self.link(device, DOWN);
    }

    /// Makes the device of an uplink fail, and publishes tables like the control thread.
    pub(crate) fn fail(&mut self, uplink: &str, reason: &str) {
        let key = crate::PortKey::Uplink(uplink.parse().unwrap());
        self.devices.fail(&self.shared.ports.find(&key).unwrap(), reason.to_owned());
        self.settle();
        self.shared.publish_tables(&self.shared.desired().config).unwrap();
        self.settle();
    }

    pub(crate) fn team(&self) -> TeamStatus {
        self.shared.team("both").unwrap()
    }

    /// Returns the states of the members, in order.
    pub(crate) fn states(&self) -> Vec<TeamMemberState> {
        self.team().members.iter().map(|member| member.state).collect()
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        self.team().members.into_iter().map(|member| member.reason).collect()
    }

    /// Returns the devices by which frames of both NICs leave, according to the plane's
    /// distribution.
    pub(crate) fn uplink_ports(&self) -> BTreeSet<String> {
        let topology = self.plane.topology();
        let team = &topology.teams[0];
        let names = self.devices_by_port();
        let nics = topology.ports.iter().filter(|port| port.spec.id != team.port);
        let mut uplinks = BTreeSet::new();
        for nic in nics {
            let origin = team.distribution.ingress_context(nic.spec.id);
            for flow in 0..64 {
                let key = team.distribution.key(&udp(nic.spec.mac.unwrap(), flow), origin);
                let Some(choice) = team.distribution.choose(&key) else { continue };
                let member = team.distribution.member(choice.member).unwrap();
                let port =
                    team.members.iter().find(|team_member| team_member.id == member).unwrap().port;
                uplinks.insert(names[&port].clone());
            }
        }
        uplinks
    }

    fn devices_by_port(&self) -> BTreeMap<PortId, String> {
        let config = &self.shared.desired().config;
        let uplinks = config.uplinks.iter().filter_map(|uplink| {
            let key = crate::PortKey::Uplink(uplink.name.clone());
            Some((self.shared.ids().port(&key)?, uplink.device.clone()))
        });
        uplinks.collect()
    }

    pub(crate) fn events(&self, id: u32) -> Vec<Event> {
        let events = self.shared.events.page(0, usize::MAX, &EventFilter::default()).events;
        events.into_iter().filter(|event| event.kind_number == id).collect()
    }
}

/// Returns a UDP datagram of the flow with this number.
pub(crate) fn udp(source: MacAddr, flow: u32) -> Frame {
    let mut bytes = vec![0; 100];
    bytes[0..6].copy_from_slice(&[2, 9, 9, 9, 9, flow as u8]);
    bytes[6..12].copy_from_slice(&source.octets());
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
    bytes[23] = 17;
    bytes[26..30].copy_from_slice(&source.octets()[2..]);
    bytes[30..34].copy_from_slice(&(0x0a00_0000 + flow / 4).to_be_bytes());
    bytes[34..38].copy_from_slice(&(0x1000_0000 + flow).to_be_bytes());
    let mut frame = Frame::new(0);
    frame.set_bytes(&bytes);
    frame
}

/// Returns device names as a set.
pub(crate) fn set(devices: &[&str]) -> BTreeSet<String> {
    devices.iter().map(|device| (*device).to_owned()).collect()
}
