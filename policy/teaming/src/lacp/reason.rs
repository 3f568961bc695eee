//! Reasons for which a member is used or not.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Reason for which a member is in use (collects and distributes) or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LacpReason {
    /// The member is in use.
    InUse,
    /// The link of the member is down.
    LinkDown,
    /// The Partner has sent no LACPDU within the timeout, or none yet.
    PartnerSilent,
    /// The Partner sends no LACPDUs, and individual links are not permitted.
    NoPartner,
    /// The Partner does not aggregate, and individual links are not permitted.
    PartnerIndividual,
    /// The link is half duplex, and individual links are not permitted.
    HalfDuplex,
    /// The link leads back to this System.
    Loopback,
    /// The team uses another group of links.
    OtherGroup,
    /// The maximum number of members of the group is in use without this one.
    Standby,
    /// The member waits so that several members attach to the Aggregator together.
    AggregateWait,
    /// The Partner is not in sync.
    PartnerNotInSync,
    /// The port leaves a group before it joins another.
    Detaching,
}

impl fmt::Display for LacpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InUse => "in use",
            Self::LinkDown => "the link is down",
            Self::PartnerSilent => "no LACPDU of the partner is received",
            Self::NoPartner => "no partner with LACP, and individual links are not permitted",
            Self::PartnerIndividual => {
                "the partner does not aggregate, and individual links are not permitted"
            }
            Self::HalfDuplex => "the link is half duplex, and individual links are not permitted",
            Self::Loopback => "the link is looped back to this system",
            Self::OtherGroup => "the team aggregates other links",
            Self::Standby => "standby: enough members are in use",
            Self::AggregateWait => "waiting for the other members of the aggregator",
            Self::PartnerNotInSync => "the partner is not in sync",
            Self::Detaching => "leaving its aggregator before it joins another",
        })
    }
}
