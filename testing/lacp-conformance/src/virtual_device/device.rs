//! The virtual device: its ports, the processing of received frames, and the selection of ports for
//! its aggregator.

use std::time::Duration;

use super::Flaw;
use super::port::Port;
use crate::pdu::{ETHERNET_BYTES, FRAME_BYTES, Kind, Lacpdu, Mac, Marker, PortInfo, State, read};
use crate::probe::Probe;

const SYSTEM: Mac = [0x02, 0xde, 0x71, 0xce, 0, 0];

#[derive(Debug)]
pub(super) struct Device {
    flaw: Flaw,
    pub(super) ports: Vec<Port>,
    /// Last frame received by each port, in place of old buffer contents that a reader without
    /// length checks would read.
    leftovers: Vec<Vec<u8>>,
    probe: Option<Probe>,
}

impl Device {
    /// Creates a device. `state` contains the configured Activity, Timeout and Aggregation bits.
    pub(super) fn new(ports: usize, state: State, flaw: Flaw, probe: Option<Probe>) -> Self {
        let port = |index: u16| {
            let port = if flaw == Flaw::OnePortNumber { 1 } else { index + 1 };
            let actor = PortInfo {
                system_priority: 1,
                system: SYSTEM,
                key: 9,
                port_priority: 2,
                port,
                state,
            };
            Port::new(actor, flaw)
        };
        let count = u16::try_from(ports).unwrap();
        Self {
            flaw,
            ports: (0..count).map(port).collect(),
            leftovers: vec![Vec::new(); ports],
            probe,
        }
    }

    /// Processes a received frame; returns the immediate response.
    pub(super) fn handle(&mut self, index: usize, frame: &[u8], now: Duration) -> Option<Vec<u8>> {
        if !self.ports[index].is_up {
            return None;
        }
        if let Some(answer) = self.answer_probe(index, frame) {
            return Some(answer);
        }
        let mut extended = frame.to_vec();
        if self.flaw == Flaw::ReadsBeyond && frame.len() < FRAME_BYTES {
            extended.extend(self.leftovers[index].get(frame.len()..).unwrap_or_default());
        }
        if self.flaw == Flaw::AnySubtype && extended[ETHERNET_BYTES] != 2 {
            extended[ETHERNET_BYTES] = 1;
        }
        self.leftovers[index].clone_from(&extended);
        match Kind::decode(&extended) {
            Kind::Lacp(pdu) => self.handle_lacpdu(index, pdu, &extended, now),
            Kind::Marker(marker) => return self.answer_marker(marker),
            Kind::Other => {}
        }
        None
    }

    fn handle_lacpdu(&mut self, index: usize, mut pdu: Lacpdu, frame: &[u8], now: Duration) {
        let zeros = |range: std::ops::Range<usize>| frame[range].iter().all(|byte| *byte == 0);
        let is_rejected = match self.flaw {
            Flaw::VersionOneOnly => pdu.version != 1,
            Flaw::ZerosOnly => !(zeros(33..36) && zeros(53..56) && zeros(74..FRAME_BYTES)),
            _ => false,
        };
        if [frame[17], frame[37], frame[57]] != [20, 20, 16] {
            if self.flaw != Flaw::HalfTaken {
                return;
            }
            pdu.actor.state = State(0x80);
        }
        // The device never aggregates with itself (6.4.14.1).
        if is_rejected || frame.len() < FRAME_BYTES || self.is_own(&pdu) {
            return;
        }
        self.ports[index].receive(&pdu, now);
    }

    fn is_own(&self, pdu: &Lacpdu) -> bool {
        pdu.actor.system == SYSTEM && self.flaw != Flaw::Loops
    }

    fn answer_marker(&self, marker: Marker) -> Option<Vec<u8>> {
        if self.flaw == Flaw::NoMarker || marker.is_response && self.flaw != Flaw::AnswersResponses
        {
            return None;
        }
        let difference = u32::from(self.flaw == Flaw::WrongMarker);
        let transaction = marker.transaction ^ difference;
        Some(Marker { source: SYSTEM, is_response: true, transaction, ..marker }.encode())
    }

    fn answer_probe(&self, index: usize, frame: &[u8]) -> Option<Vec<u8>> {
        let probe = self.probe?;
        let source: Mac = read(frame, 6)?;
        let collects = match self.flaw {
            Flaw::AlwaysPasses => true,
            Flaw::NeverPasses => false,
            _ => self.ports[index].actor.state.has(State::COLLECTING),
        };
        if frame != probe.request(source) || !collects {
            return None;
        }
        let mut answer = frame.to_vec();
        answer[..6].copy_from_slice(&source);
        answer[6..12].copy_from_slice(&SYSTEM);
        answer[21] = 2;
        answer[28..32].copy_from_slice(&probe.target.octets());
        answer[38..42].copy_from_slice(&probe.sender.octets());
        Some(answer)
    }

    /// Runs the state machines; returns LACPDUs to send, with their ports.
    pub(super) fn tick(&mut self, now: Duration) -> Vec<(usize, Vec<u8>)> {
        let selected: Vec<bool> =
            (0..self.ports.len()).map(|index| self.is_selected(index)).collect();
        let mut sent_frames = Vec::new();
        for (index, selected) in selected.into_iter().enumerate() {
            if self.ports[index].tick(now, selected) {
                sent_frames.push((index, self.lacpdu(index)));
            }
        }
        sent_frames
    }

    /// Returns whether a port belongs to the single aggregator: that of the first port with a
    /// partner, which it shares with ports of the same partner system and key if all are
    /// aggregatable.
    fn is_selected(&self, index: usize) -> bool {
        let Some(first) = self.ports.iter().position(Port::has_partner) else { return false };
        let group = |index: usize| {
            let partner = &self.ports[index].partner;
            (partner.system_priority, partner.system, partner.key)
        };
        let shares = |index: usize| self.ports[index].partner.state.has(State::AGGREGATION);
        let joins_group = shares(index) && shares(first) && group(index) == group(first);
        let joins = match self.flaw {
            Flaw::OneForAll => true,
            Flaw::NeverTwo => false,
            _ => joins_group,
        };
        self.ports[index].has_partner() && (index == first || joins)
    }

    fn lacpdu(&self, index: usize) -> Vec<u8> {
        let port = &self.ports[index];
        let mut pdu = Lacpdu {
            source: SYSTEM,
            version: 1,
            actor: port.actor,
            partner: port.partner,
            collector_max_delay: 0,
        };
        if self.flaw == Flaw::Echo {
            pdu.partner.state = pdu.partner.state.without(State::COLLECTING);
        }
        let mut frame = pdu.encode();
        match self.flaw {
            Flaw::Destination => frame[5] = 0,
            Flaw::Reserved => frame[80] = 1,
            _ => {}
        }
        frame
    }
}
