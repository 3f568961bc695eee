//! The simulated partner at the far end of a link of the device.

use crate::pdu::{Lacpdu, Mac, PortInfo, State};

/// Behaviour of the partner when no case intervenes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Sends nothing.
    Mute,
    /// Sends each second and when the device's information changes, as a conforming partner does.
    Answer,
    /// Sends back every received LACPDU unchanged, as a looped cable does.
    Reflect,
}

/// The partner on one link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partner {
    pub(crate) voice: Behaviour,
    /// Source address of its frames.
    pub(crate) source: Mac,
    /// Information that it sends as actor. It sets collecting and distributing as soon as the
    /// device is in sync, unless `state_is_fixed`.
    pub(crate) info: PortInfo,
    pub(crate) state_is_fixed: bool,
    /// Change that a case makes to every LACPDU before transmission.
    pub(crate) tweak: Option<fn(&mut Lacpdu)>,
}

/// State of an active partner with the short timeout that is aggregatable and in sync.
pub(crate) const WILLING: State = State(
    State::ACTIVITY.0 | State::SHORT_TIMEOUT.0 | State::AGGREGATION.0 | State::SYNCHRONIZATION.0,
);

impl Partner {
    /// Returns a conforming partner: the same system and key on every link, and a different port on
    /// each.
    pub(crate) fn baseline(interface: usize) -> Self {
        let number = u8::try_from(interface).unwrap_or(u8::MAX);
        Self {
            voice: Behaviour::Answer,
            source: [0x02, 0x4c, 0x41, 0x43, 0x50, number],
            info: PortInfo {
                system_priority: 0x8000,
                system: [0x02, 0x4c, 0x41, 0x43, 0x50, 0xff],
                key: 0x21,
                port_priority: 0xff,
                port: 0x100 + u16::from(number),
                state: WILLING,
            },
            state_is_fixed: false,
            tweak: None,
        }
    }

    /// Returns the next LACPDU, where `device` is the last received information of the device.
    pub(crate) fn compose(&self, device: Option<&PortInfo>) -> Lacpdu {
        let device = device.copied().unwrap_or_default();
        let mut actor = self.info;
        if !self.state_is_fixed {
            let synchronization = State::SYNCHRONIZATION;
            let flows = device.state.has(synchronization) && actor.state.has(synchronization);
            actor.state =
                actor.state.put(State(State::COLLECTING.0 | State::DISTRIBUTING.0), flows);
        }
        let mut pdu = Lacpdu {
            source: self.source,
            version: 1,
            actor,
            partner: device,
            collector_max_delay: 0,
        };
        if let Some(tweak) = self.tweak {
            tweak(&mut pdu);
        }
        pdu
    }
}
