//! VLANs of a trunk port.

use serde::{Deserialize, Serialize};
use suimon_frame::VlanId;
use utoipa::ToSchema;

/// Regular expression (ECMA-262) of a VLAN id or a range of them.
pub(crate) const VLANS_PATTERN: &str = r"^\s*[0-9]{1,4}\s*(-\s*[0-9]{1,4}\s*)?$";

/// VLANs of a trunk port, as numbers and ranges in the order of the configuration, such as `[10,
/// "20-29"]`. Validation rejects overlaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Vec<VlanRangeText>)]
pub struct TrunkVlans(pub Vec<VlanRange>);

/// VLAN or inclusive range of VLANs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "VlanRangeText", into = "VlanRangeText")]
pub struct VlanRange {
    first: VlanId,
    last: VlanId,
}

impl VlanRange {
    /// Returns the range; `None` if `last` is less than `first`.
    pub fn new(first: VlanId, last: VlanId) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// Returns the lowest VLAN of the range.
    pub const fn first(self) -> VlanId {
        self.first
    }

    /// Returns the highest VLAN of the range.
    pub const fn last(self) -> VlanId {
        self.last
    }

    /// Returns true if both ranges contain a common VLAN.
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Notation of a range: `10` or `"20-29"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum VlanRangeText {
    /// Single VLAN id, such as `10`.
    One(u16),
    /// Range `FIRST-LAST`.
    Range(String),
}

impl TryFrom<VlanRangeText> for VlanRange {
    type Error = String;

    fn try_from(text: VlanRangeText) -> Result<Self, Self::Error> {
        let is_number = |n: &str| n.len() <= 4 && n.bytes().all(|byte| byte.is_ascii_digit());
        let parse = |n: &str| {
            let n = Some(n.trim()).filter(|n| is_number(n))?;
            n.parse().ok().and_then(VlanId::new)
        };
        let range = match &text {
            VlanRangeText::One(id) => VlanId::new(*id).and_then(|id| Self::new(id, id)),
            VlanRangeText::Range(range) => match range.split_once('-') {
                Some((first, last)) => {
                    parse(first).zip(parse(last)).and_then(|(first, last)| Self::new(first, last))
                }
                None => parse(range).and_then(|id| Self::new(id, id)),
            },
        };
        range.ok_or_else(|| {
            "a VLAN is a number from 1 to 4094, a range is written like \"20-29\"".to_owned()
        })
    }
}

impl From<VlanRange> for VlanRangeText {
    fn from(range: VlanRange) -> Self {
        if range.first == range.last {
            Self::One(range.first.get())
        } else {
            Self::Range(format!("{}-{}", range.first, range.last))
        }
    }
}
