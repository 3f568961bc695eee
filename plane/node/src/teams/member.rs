//! State of one team member.

use suimon_contract::Name;
use suimon_frame::MacAddr;
use suimon_ports::LinkProperties;
use suimon_quantity::PortId;
use suimon_teaming::lacp::{LacpReason, Link};
use suimon_teaming::{MemberFault, MemberId, MemberLink};

use super::rates::Rates;
use crate::ports::member_id;

/// Properties of a team member: its configuration, and the state of its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberInput {
    /// Port of the member's device.
    pub(crate) port: PortId,
    pub(crate) uplink: Name,
    /// Name of the device.
    pub(crate) device: String,
    /// True if LACPDUs can be exchanged by the device. False for a TAP: frames that the host sends
    /// on it arrive at the switch's own queues.
    pub(crate) supports_control_socket: bool,
    /// Number of the attempt to open the device.
    pub(crate) generation: u64,
    /// True if the device is open.
    pub(crate) is_open: bool,
    /// Reason why the device is not open.
    pub(crate) failure: Option<String>,
    pub(crate) link: LinkProperties,
    /// MAC address of the device; `None` if it is not a unicast address, or frames must not have it
    /// as their source.
    pub(crate) mac: Option<MacAddr>,
}

/// Team member and its state.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) properties: MemberInput,
    /// Link state that the device reported last.
    pub(crate) link: LinkProperties,
    /// MAC address in the team: the device's, or a generated one ([`placeholder_mac`]).
    pub(crate) mac: MacAddr,
    /// Reason why the member cannot be used although its device is open.
    pub(crate) exclusion: Option<String>,
    pub(crate) control: ControlSocketState,
    /// Directions that LACP permits. Meaningless if the team's mode is not LACP.
    pub(crate) lacp: LacpDirections,
    pub(crate) rates: Rates,
}

/// State of the control socket, by which LACPDUs are exchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ControlSocketState {
    /// The socket is being opened.
    #[default]
    Opening,
    Open,
    /// The socket could not be opened, with the reason; opening is retried.
    Failed(String),
}

/// Directions in which LACP permits frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LacpDirections {
    pub(crate) collecting: bool,
    pub(crate) distributing: bool,
}

impl Member {
    pub(crate) fn new(properties: MemberInput) -> Self {
        Self {
            link: properties.link,
            mac: placeholder_mac(properties.port),
            exclusion: None,
            control: ControlSocketState::default(),
            lacp: LacpDirections::default(),
            rates: Rates::default(),
            properties,
        }
    }

    pub(crate) fn id(&self) -> MemberId {
        member_id(self.properties.port)
    }

    pub(crate) fn name(&self) -> &Name {
        &self.properties.uplink
    }

    /// Updates the properties. A device that was closed or opened again needs another control
    /// socket.
    pub(crate) fn update(&mut self, properties: MemberInput) {
        if properties.generation != self.properties.generation
            || properties.device != self.properties.device
        {
            self.control = ControlSocketState::Opening;
        }
        self.link = properties.link;
        self.properties = properties;
    }

    fn is_up(&self) -> bool {
        self.link.is_up && self.properties.is_open && self.exclusion.is_none()
    }

    /// Returns the link state for the team policy.
    pub(crate) fn team_link(&self) -> MemberLink {
        MemberLink {
            up: self.is_up(),
            speed_mbps: self.link.speed.mbps.unwrap_or(0),
            distributing: self.lacp.distributing,
            collecting: self.lacp.collecting,
        }
    }

    /// Returns the link state for LACP; `None` while the control socket is not open. A link of
    /// unknown duplex is assumed to be full duplex.
    pub(crate) fn lacp_link(&self) -> Option<Link> {
        let is_usable = self.is_up() && self.control == ControlSocketState::Open;
        is_usable.then(|| Link {
            speed_mbps: self.link.speed.mbps.unwrap_or(0),
            full_duplex: self.link.speed.full_duplex.unwrap_or(true),
        })
    }

    /// Returns the reason why the member cannot be used, as text. `lacp`: the reason according to
    /// LACP.
    pub(crate) fn fault_text(&self, fault: MemberFault, lacp: Option<LacpReason>) -> String {
        if let Some(exclusion) = &self.exclusion {
            return exclusion.clone();
        }
        if !self.properties.is_open {
            let failure = self.properties.failure.clone();
            return failure.unwrap_or_else(|| "its device is not open".to_owned());
        }
        if !self.link.is_up || fault == MemberFault::LinkDown {
            return "its link is down".to_owned();
        }
        let reason = match (&self.control, lacp) {
            _ if !self.properties.supports_control_socket => {
                "a TAP device cannot carry LACPDUs; use another uplink".to_owned()
            }
            (ControlSocketState::Opening, _) => "the socket for LACPDUs is not open yet".to_owned(),
            (ControlSocketState::Failed(reason), _) => {
                format!("LACPDUs cannot be sent and received: {reason}")
            }
            (ControlSocketState::Open, Some(reason)) => reason.to_string(),
            (ControlSocketState::Open, None) => "no LACPDU has been exchanged yet".to_owned(),
        };
        format!("LACP does not permit traffic: {reason}")
    }
}

/// Returns a MAC address for a member with an unknown one: locally administered and different for
/// each device of the host. The member carries no frames, so that no frame has this address; except
/// for TAPs, whose other end is the kernel.
pub(crate) fn placeholder_mac(port: PortId) -> MacAddr {
    let [a, b, c, d] = port.0.to_be_bytes();
    MacAddr::new([0x02, 0x53, a, b, c, d])
}
