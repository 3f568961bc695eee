//! Link Aggregation Groups.

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;

use crate::MemberId;

/// What kind of group a member is in, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LagClass {
    /// Links that both ends want to aggregate.
    Aggregate,
    /// One link whose Partner speaks LACP but does not aggregate.
    Individual,
    /// One link without a Partner, or that cannot aggregate.
    Defaulted,
}

/// The Link Aggregation Group Identifier (IEEE 802.1AX-2014, 6.3.6) without our
/// own System, which all groups of a team share. Ports of one identifier may
/// share an Aggregator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagId {
    /// What kind of group it is.
    pub class: LagClass,
    /// The Partner's System priority.
    pub partner_system_priority: u16,
    /// The Partner's System.
    pub partner_system: MacAddr,
    /// The Partner's key.
    pub partner_key: u16,
    /// Our key.
    pub actor_key: u16,
    /// The only member of a group that is not an aggregate.
    pub individual: Option<MemberId>,
}
