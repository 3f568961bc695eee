//! The VLANs of a trunk port.

use serde::{Deserialize, Serialize};
use suimon_frame::VlanId;
use utoipa::ToSchema;

/// Texts that are a VLAN or a range of them, as a regular expression (ECMA-262).
pub(crate) const VLANS_PATTERN: &str = r"^\s*[0-9]{1,4}\s*(-\s*[0-9]{1,4}\s*)?$";

/// The VLANs a trunk port carries, in writing order: numbers and ranges, such as
/// `[10, "20-29"]`. Overlaps are refused when the host file is validated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Vec<VlanRangeText>)]
pub struct TrunkVlans(pub Vec<VlanRange>);

/// One VLAN or an inclusive range of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "VlanRangeText", into = "VlanRangeText")]
pub struct VlanRange {
    first: VlanId,
    last: VlanId,
}

impl VlanRange {
    /// `None` if `last` is less than `first`.
    pub fn new(first: VlanId, last: VlanId) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    /// The lowest VLAN.
    pub const fn first(self) -> VlanId {
        self.first
    }

    /// The highest VLAN.
    pub const fn last(self) -> VlanId {
        self.last
    }

    /// Whether a VLAN is in both.
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// How a range is written: `10` or `"20-29"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum VlanRangeText {
    /// One VLAN.
    One(u16),
    /// `FIRST-LAST`.
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
