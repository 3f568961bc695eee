//! A run against one device: simulates the partners and records the device's frames.

use std::time::Duration;

use anyhow::Result;

use crate::partner::{Behaviour, Partner};
use crate::pdu::{Kind, Lacpdu, PortInfo, SLOW_PROTOCOLS_TYPE, State, read_u16};
use crate::probe::{Probe, ProbeReply};
use crate::record::{ReceivedFrame, lacpdus};
use crate::setup::Setup;
use crate::verdict::{Stop, not_applicable};
use crate::world::World;

/// Interval of the partner's periodic LACPDUs: Fast_Periodic_Time.
const EVERY: Duration = Duration::from_secs(1);
/// Minimum interval between LACPDUs of a partner, so that it observes the limit of three per
/// second.
const APART: Duration = Duration::from_millis(350);
/// Time without progress after which a silent device is prompted to transmit; see
/// [`Session::nudge`].
const PATIENCE: Duration = Duration::from_millis(2500);
/// Number of frames that a flood sends before it processes received frames.
const BURST: usize = 32;

/// A link: its partner and the frames received on it.
#[derive(Debug)]
pub(crate) struct PartnerLink {
    pub(crate) partner: Partner,
    /// Last actor information of the device.
    pub(crate) device: Option<PortInfo>,
    /// All frames received since the case began.
    pub(crate) received_frames: Vec<ReceivedFrame>,
    last_sent: Option<(Duration, Lacpdu)>,
}

/// The links, and the access to the interfaces and the clock.
pub(crate) struct Session<'w> {
    world: &'w mut dyn World,
    pub(crate) setup: Setup,
    pub(crate) links: Vec<PartnerLink>,
    /// Received replies to probes, with time and interface.
    pub(crate) probe_replies: Vec<(Duration, usize, ProbeReply)>,
}

impl PartnerLink {
    fn new(interface: usize) -> Self {
        let partner = Partner { voice: Behaviour::Mute, ..Partner::baseline(interface) };
        Self { partner, device: None, received_frames: Vec::new(), last_sent: None }
    }

    /// Returns the last LACPDU of the device in this case.
    pub(crate) fn last(&self) -> Option<&Lacpdu> {
        lacpdus(&self.received_frames).next_back().map(|(_, pdu)| pdu)
    }

    /// Returns the LACPDUs since `since` with their times.
    pub(crate) fn lacpdus_since(&self, since: Duration) -> Vec<(Duration, Lacpdu)> {
        lacpdus(&self.received_frames)
            .filter(|(time, _)| *time >= since)
            .map(|(time, pdu)| (time, *pdu))
            .collect()
    }

    /// Returns whether the last LACPDU of the device reports that frames pass and that the partner
    /// is known.
    pub(crate) fn is_in_use(&self) -> bool {
        self.last().is_some_and(|pdu| {
            pdu.actor.state.has(State::IN_USE)
                && pdu.partner.is_same_port(&self.partner.info)
                && pdu.partner.state.has(State::SYNCHRONIZATION)
        })
    }

    /// Returns the time of the partner's next LACPDU; `None` if it sends none on its own.
    fn due(&self) -> Option<Duration> {
        if self.partner.voice != Behaviour::Answer {
            return None;
        }
        let Some((sent_at, sent_pdu)) = &self.last_sent else { return Some(Duration::ZERO) };
        let has_changed = self.partner.compose(self.device.as_ref()) != *sent_pdu;
        Some(*sent_at + if has_changed { APART } else { EVERY })
    }
}

impl<'w> Session<'w> {
    /// Creates a session in which no partner sends.
    pub(crate) fn new(world: &'w mut dyn World, setup: Setup) -> Self {
        let links = (0..world.interfaces()).map(PartnerLink::new).collect();
        Self { world, setup, links, probe_replies: Vec::new() }
    }

    /// Returns the time since the run began.
    pub(crate) fn now(&self) -> Duration {
        self.world.now()
    }

    /// Deletes all received frames at the beginning of a case.
    pub(crate) fn begin_case(&mut self) {
        for link in &mut self.links {
            link.received_frames.clear();
        }
        self.probe_replies.clear();
    }

    /// Runs the partners until `is_done` returns true, for at most `limit`; returns whether it did.
    pub(crate) fn run_until(
        &mut self,
        limit: Duration,
        mut is_done: impl FnMut(&Self) -> bool,
    ) -> Result<bool> {
        let deadline = self.now() + limit;
        loop {
            if is_done(self) {
                return Ok(true);
            }
            if self.now() >= deadline {
                return Ok(false);
            }
            self.send_due()?;
            let due = self.links.iter().filter_map(PartnerLink::due).min();
            let until = due.map_or(deadline, |due| due.min(deadline));
            if let Some(arrival) = self.world.receive(until)? {
                self.handle_arrival(arrival.interface, arrival.time, arrival.frame)?;
            }
        }
    }

    /// Runs the partners for a time.
    pub(crate) fn run_for(&mut self, time: Duration) -> Result<()> {
        self.run_until(time, |_| false).map(drop)
    }

    /// Sends the partner's next LACPDU immediately.
    pub(crate) fn send_lacpdu(&mut self, interface: usize) -> Result<()> {
        let link = &mut self.links[interface];
        let pdu = link.partner.compose(link.device.as_ref());
        link.last_sent = Some((self.world.now(), pdu));
        self.send(interface, &pdu.encode())
    }

    /// Sends a frame unchanged.
    pub(crate) fn send(&mut self, interface: usize, frame: &[u8]) -> Result<()> {
        self.trace('>', interface, &Kind::decode(frame));
        self.world.send(interface, frame)
    }

    /// Sends these frames repeatedly at the maximum rate for a time, while the partners run;
    /// returns the number of frames sent.
    pub(crate) fn flood(
        &mut self,
        interface: usize,
        time: Duration,
        frames: &[Vec<u8>],
    ) -> Result<u64> {
        let deadline = self.now() + time;
        let mut sent_count = 0;
        let mut next = frames.iter().cycle();
        while self.now() < deadline {
            for frame in next.by_ref().take(BURST) {
                self.world.send(interface, frame)?;
                sent_count += 1;
            }
            self.send_due()?;
            // Receives at most as many frames as were sent, so that a device that sends more cannot
            // prolong the flood.
            for _ in 0..BURST {
                let Some(arrival) = self.world.receive(Duration::ZERO)? else { break };
                self.handle_arrival(arrival.interface, arrival.time, arrival.frame)?;
            }
        }
        Ok(sent_count)
    }

    /// Sets a link down or up.
    pub(crate) fn set_link(&mut self, interface: usize, up: bool) -> Result<()> {
        self.world.set_link(interface, up)
    }

    /// Sends the probe on an interface; `None` if no probe is configured.
    pub(crate) fn probe(&mut self, interface: usize) -> Result<Option<Probe>> {
        let Some(probe) = self.setup.probe else { return Ok(None) };
        let source = self.links[interface].partner.source;
        self.world.send(interface, &probe.request(source))?;
        Ok(Some(probe))
    }

    /// Brings every link into use with the baseline partner; returns the elapsed time.
    ///
    /// # Errors
    /// [`Stop::NotApplicable`] if a link does not come into use. One case reports this as its
    /// failure; the other cases cannot be judged.
    pub(crate) fn establish(&mut self) -> Result<Duration, Stop> {
        let started = self.now();
        for (interface, link) in self.links.iter_mut().enumerate() {
            link.partner = Partner::baseline(interface);
        }
        let limit = self.setup.establish_limit;
        let everywhere = |session: &Self| session.links.iter().all(PartnerLink::is_in_use);
        while self.now() < started + limit {
            let nudged_at = self.now();
            if self.run_until(PATIENCE, everywhere)? {
                return Ok(self.now() - started);
            }
            self.nudge(nudged_at)?;
        }
        not_applicable(format!("a member did not come into use within {} s", limit.as_secs()))
    }

    /// Sends an LACPDU with a wrong view of the device's activity on each link on which the device
    /// has been silent since `since`. It changes no state, but the device must respond
    /// (update_NTT). A device whose previous partner had the long timeout may otherwise be silent
    /// for half a minute.
    fn nudge(&mut self, since: Duration) -> Result<()> {
        for interface in 0..self.links.len() {
            let link = &self.links[interface];
            if link.lacpdus_since(since).is_empty() {
                let mut pdu = link.partner.compose(link.device.as_ref());
                pdu.partner.state.0 ^= State::ACTIVITY.0;
                self.send(interface, &pdu.encode())?;
            }
        }
        Ok(())
    }

    fn trace(&self, direction: char, interface: usize, kind: &Kind) {
        if let (true, Kind::Lacp(pdu)) = (self.setup.trace, kind) {
            let time_s = self.now().as_secs_f64();
            eprintln!(
                "{time_s:9.3} {interface} {direction} actor: {}; partner: {}",
                pdu.actor, pdu.partner
            );
        }
    }

    fn send_due(&mut self) -> Result<()> {
        for interface in 0..self.links.len() {
            if self.links[interface].due().is_some_and(|due| due <= self.world.now()) {
                self.send_lacpdu(interface)?;
            }
        }
        Ok(())
    }

    fn handle_arrival(&mut self, interface: usize, time: Duration, frame: Vec<u8>) -> Result<()> {
        if let Some(observation) = self.setup.probe.and_then(|probe| probe.decode_reply(&frame)) {
            self.probe_replies.push((time, interface, observation));
        }
        if read_u16(&frame, 12) != Some(SLOW_PROTOCOLS_TYPE) {
            return Ok(());
        }
        let kind = Kind::decode(&frame);
        self.trace('<', interface, &kind);
        let link = &mut self.links[interface];
        if let Kind::Lacp(pdu) = &kind {
            link.device = Some(pdu.actor);
            if link.partner.voice == Behaviour::Reflect {
                self.world.send(interface, &frame)?;
            }
        }
        link.received_frames.push(ReceivedFrame { time, frame, kind });
        Ok(())
    }
}
