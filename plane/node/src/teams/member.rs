//! One member of a team, as it is now.

use suimon_contract::Name;
use suimon_frame::MacAddr;
use suimon_ports::LinkFacts;
use suimon_quantity::PortId;
use suimon_teaming::lacp::{Link, Reason};
use suimon_teaming::{MemberFault, MemberId, MemberLink};

use super::rates::Rates;
use crate::topology::member_id;

/// What desired state and the open device say of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberFacts {
    /// The port of its device.
    pub(crate) port: PortId,
    pub(crate) uplink: Name,
    /// The name of its device.
    pub(crate) device: String,
    /// Whether LACPDUs can come and go by the device: by a TAP, what the host sends
    /// arrives at our own queues.
    pub(crate) has_control: bool,
    /// Which opening of the device this is about.
    pub(crate) generation: u64,
    /// Whether the device is open.
    pub(crate) is_open: bool,
    /// Why not.
    pub(crate) failure: Option<String>,
    pub(crate) link: LinkFacts,
    /// The device's address, if it is a station's and frames may have it as their source.
    pub(crate) mac: Option<MacAddr>,
}

/// A member and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) facts: MemberFacts,
    /// The link as it was told last.
    pub(crate) link: LinkFacts,
    /// Its address in the team: the device's, or one that nobody has.
    pub(crate) mac: MacAddr,
    /// Why it cannot be used although its device is open.
    pub(crate) trouble: Option<String>,
    pub(crate) control: Control,
    /// What LACP says of it. Means nothing in other modes.
    pub(crate) lacp: LacpUse,
    pub(crate) rates: Rates,
}

/// Whether its LACPDUs come and go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Control {
    /// The socket is being opened.
    #[default]
    Awaited,
    Open,
    /// Why it could not be opened; it is tried again.
    Failed(String),
}

/// Whether LACP lets frames pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LacpUse {
    pub(crate) collecting: bool,
    pub(crate) distributing: bool,
}

impl Member {
    pub(crate) fn new(facts: MemberFacts) -> Self {
        Self {
            link: facts.link,
            mac: placeholder(facts.port),
            trouble: None,
            control: Control::default(),
            lacp: LacpUse::default(),
            rates: Rates::default(),
            facts,
        }
    }

    pub(crate) fn id(&self) -> MemberId {
        member_id(self.facts.port)
    }

    pub(crate) fn name(&self) -> &Name {
        &self.facts.uplink
    }

    /// Takes over what is known now. A device that was opened anew, or closed, has
    /// another socket.
    pub(crate) fn follow(&mut self, facts: MemberFacts) {
        if facts.generation != self.facts.generation || facts.device != self.facts.device {
            self.control = Control::Awaited;
        }
        self.link = facts.link;
        self.facts = facts;
    }

    fn is_up(&self) -> bool {
        self.link.up && self.facts.is_open && self.trouble.is_none()
    }

    /// For the team.
    pub(crate) fn team_link(&self) -> MemberLink {
        MemberLink {
            up: self.is_up(),
            speed_mbps: self.link.speed.mbps.unwrap_or(0),
            distributing: self.lacp.distributing,
            collecting: self.lacp.collecting,
        }
    }

    /// For LACP, which has no link where it can neither speak nor hear. A link of unknown
    /// duplex is full duplex, as all are that are not decades old.
    pub(crate) fn lacp_link(&self) -> Option<Link> {
        let is_usable = self.is_up() && self.control == Control::Open;
        is_usable.then(|| Link {
            speed_mbps: self.link.speed.mbps.unwrap_or(0),
            full_duplex: self.link.speed.full_duplex.unwrap_or(true),
        })
    }

    /// Why it cannot be used; `lacp` is what LACP says of it.
    pub(crate) fn fault_text(&self, fault: MemberFault, lacp: Option<Reason>) -> String {
        if let Some(trouble) = &self.trouble {
            return trouble.clone();
        }
        if !self.facts.is_open {
            let failure = self.facts.failure.clone();
            return failure.unwrap_or_else(|| "its device is not open".to_owned());
        }
        if !self.link.up || fault == MemberFault::LinkDown {
            return "its link is down".to_owned();
        }
        let why = match (&self.control, lacp) {
            _ if !self.facts.has_control => {
                "a TAP device cannot carry LACPDUs; use another uplink".to_owned()
            }
            (Control::Awaited, _) => "the socket for LACPDUs is not open yet".to_owned(),
            (Control::Failed(reason), _) => {
                format!("LACPDUs cannot be sent and received: {reason}")
            }
            (Control::Open, Some(reason)) => reason.to_string(),
            (Control::Open, None) => "no LACPDU has been exchanged yet".to_owned(),
        };
        format!("LACP does not permit traffic: {why}")
    }
}

/// An address for a member whose own is not known: locally administered, and different
/// for each device of this host. No frame ever has it, for such a member carries none,
/// but those of a member whose other side is the kernel itself.
pub(crate) fn placeholder(port: PortId) -> MacAddr {
    let [a, b, c, d] = port.0.to_be_bytes();
    MacAddr::new([0x02, 0x53, a, b, c, d])
}
