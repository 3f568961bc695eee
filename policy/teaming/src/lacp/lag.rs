//! Link Aggregation Groups (LAG).

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;

use crate::MemberId;

/// Class of a group of links, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LagClass {
    /// Links that both ends can aggregate.
    Aggregate,
    /// Single link whose Partner sends LACPDUs but does not aggregate.
    Individual,
    /// Single link without a Partner, or whose link cannot aggregate because it is half duplex.
    Defaulted,
}

/// Link Aggregation Group Identifier (IEEE 802.1AX-2014, 6.3.6) without the local System, which all
/// groups of a team share. Ports with equal identifiers may share an Aggregator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagId {
    /// Class of the group, best first.
    pub class: LagClass,
    /// System priority of the Partner.
    pub partner_system_priority: u16,
    /// System address of the Partner.
    pub partner_system: MacAddr,
    /// Operational key of the Partner.
    pub partner_key: u16,
    /// Operational key of the local end.
    pub actor_key: u16,
    /// Member of a group that consists of one link only; `None` for [`LagClass::Aggregate`].
    pub individual: Option<MemberId>,
}
