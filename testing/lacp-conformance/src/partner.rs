//! What the suite plays at the far end of one of the device's links.

use crate::pdu::{Lacpdu, Mac, PortInfo, State};

/// How the partner behaves by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// Sends nothing.
    Mute,
    /// Sends each second and when the device's information changes, as a partner that
    /// keeps the rules does.
    Answer,
    /// Sends back every LACPDU as it came, as a looped wire does.
    Reflect,
}

/// The partner on one link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partner {
    pub(crate) voice: Voice,
    /// Source address of its frames.
    pub(crate) source: Mac,
    /// What it says of itself. It says collecting and distributing as soon as the
    /// device is in sync, unless `state_is_fixed`.
    pub(crate) info: PortInfo,
    pub(crate) state_is_fixed: bool,
    /// What a case changes in every LACPDU before it is sent.
    pub(crate) tweak: Option<fn(&mut Lacpdu)>,
}

/// The state of a partner that wants to hear from the device each second.
pub(crate) const WILLING: State = State(
    State::ACTIVITY.0 | State::SHORT_TIMEOUT.0 | State::AGGREGATION.0 | State::SYNCHRONIZATION.0,
);

impl Partner {
    /// The partner with which everything is well: the same system and key on every
    /// link, a port for each.
    pub(crate) fn baseline(interface: usize) -> Self {
        let number = u8::try_from(interface).unwrap_or(u8::MAX);
        Self {
            voice: Voice::Answer,
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

    /// Its next LACPDU, to a device that last said `device` of itself.
    pub(crate) fn compose(&self, device: Option<&PortInfo>) -> Lacpdu {
        let device = device.copied().unwrap_or_default();
        let mut actor = self.info;
        if !self.state_is_fixed {
            let both = State::SYNCHRONIZATION;
            let flows = device.state.has(both) && actor.state.has(both);
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
