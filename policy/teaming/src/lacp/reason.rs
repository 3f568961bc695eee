//! Why a member is used or not.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Why a member collects and distributes, or what it lacks for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It is in use.
    InUse,
    /// Its link is down.
    LinkDown,
    /// The Partner has not been heard for too long, or not yet.
    PartnerSilent,
    /// There is no Partner that speaks LACP, and individual links are not allowed.
    NoPartner,
    /// The Partner does not aggregate, and individual links are not allowed.
    PartnerIndividual,
    /// The link is half duplex, and individual links are not allowed.
    HalfDuplex,
    /// The other end is our own System.
    Loopback,
    /// The team uses another group of links.
    OtherGroup,
    /// The group has enough members in use.
    Standby,
    /// It waits for others to attach with.
    AggregateWait,
    /// The Partner is not in sync.
    PartnerNotInSync,
    /// It leaves a group before it joins another.
    Detaching,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "in use",
            Self::LinkDown => "the link is down",
            Self::PartnerSilent => "the partner is silent",
            Self::NoPartner => "no partner speaks LACP, and individual links are not allowed",
            Self::PartnerIndividual => {
                "the partner does not aggregate, and individual links are not allowed"
            }
            Self::HalfDuplex => "the link is half duplex, and individual links are not allowed",
            Self::Loopback => "the link leads back to this system",
            Self::OtherGroup => "the team uses another group of links",
            Self::Standby => "standing by: enough members are in use",
            Self::AggregateWait => "waiting for others to attach with",
            Self::PartnerNotInSync => "the partner is not in sync",
            Self::Detaching => "leaving a group before joining another",
        })
    }
}
