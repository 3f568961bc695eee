//! Rules that choose the receive queue for frames to an address, as the kernel has them:
//! `struct ethtool_rxnfc` and the `struct ethtool_rx_flow_spec` in it (linux/ethtool.h),
//! which ethtool(8) sets with `-N`.
//!
//! Bytes in, values out; the calls are in [`crate::flow_calls`].

use suimon_frame::{MacAddr, VlanId};

/// Bytes of `struct ethtool_rxnfc` without locations behind it.
pub(crate) const REQUEST_BYTES: usize = 192;
/// Where in it the locations of rules begin.
pub(crate) const LOCATIONS_AT: usize = 188;

// Where in it its fields are; those of the flow begin at 16.
const DATA_AT: usize = 8;
const FLOW_TYPE_AT: usize = 16;
const HEADER_AT: usize = 20;
const HEADER_EXTENSION_AT: usize = 72;
const MASK_AT: usize = 92;
const MASK_EXTENSION_AT: usize = 144;
const QUEUE_AT: usize = 168;
const LOCATION_AT: usize = 176;
const COUNT_AT: usize = 184;

/// `union ethtool_flow_union`, of which an Ethernet header is the beginning.
const HEADER_BYTES: usize = 52;
/// `struct ethtool_flow_ext`, and where in it the tag's control information is.
const EXTENSION_BYTES: usize = 20;
const TCI_AT: usize = 10;

const ETHER_FLOW: u32 = 0x12;
const FLOW_EXT: u32 = 1 << 31;
/// The VLAN in a tag's control information.
const VLAN_MASK: [u8; 2] = 0x0fff_u16.to_be_bytes();

/// `RX_CLS_LOC_ANY`: the driver chooses.
pub(crate) const ANY_LOCATION: u32 = u32::MAX;
/// `RX_CLS_LOC_SPECIAL`.
const LETS_DRIVER_CHOOSE: u64 = 1 << 31;

/// Frames to this address, in this VLAN or in whichever, arrive on this queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowRule {
    pub(crate) mac: MacAddr,
    pub(crate) vlan: Option<VlanId>,
    pub(crate) queue: u16,
}

/// A `struct ethtool_rxnfc`. Its first four bytes, the command, are set by who makes the
/// call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowRequest(pub(crate) [u8; REQUEST_BYTES]);

impl FlowRequest {
    /// About the device as a whole.
    pub(crate) const fn empty() -> Self {
        Self([0; REQUEST_BYTES])
    }

    /// About the rule at this place of the device's table.
    pub(crate) fn at(location: u32) -> Self {
        let mut request = Self::empty();
        request.put(LOCATION_AT, location.to_ne_bytes());
        request
    }

    /// To have this rule at this place, or at [`ANY_LOCATION`].
    pub(crate) fn insert(rule: &FlowRule, location: u32) -> Self {
        let mut request = Self::at(location);
        let extended = if rule.vlan.is_some() { FLOW_EXT } else { 0 };
        request.put(FLOW_TYPE_AT, (ETHER_FLOW | extended).to_ne_bytes());
        // An Ethernet header begins with the destination.
        request.put(HEADER_AT, rule.mac.octets());
        request.put(MASK_AT, [0xff; 6]);
        if let Some(vlan) = rule.vlan {
            request.put(HEADER_EXTENSION_AT + TCI_AT, vlan.get().to_be_bytes());
            request.put(MASK_EXTENSION_AT + TCI_AT, VLAN_MASK);
        }
        request.put(QUEUE_AT, u64::from(rule.queue).to_ne_bytes());
        request
    }

    /// The rule in the answer; `None` if it is one that [`FlowRequest::insert`] would not
    /// ask for.
    pub(crate) fn rule(&self) -> Option<FlowRule> {
        let kind = u32::from_ne_bytes(self.take(FLOW_TYPE_AT));
        let queue = u16::try_from(u64::from_ne_bytes(self.take(QUEUE_AT))).ok()?;
        let mut vlan = None;
        if kind & FLOW_EXT != 0 && self.take(MASK_EXTENSION_AT + TCI_AT) == VLAN_MASK {
            let tci = u16::from_be_bytes(self.take(HEADER_EXTENSION_AT + TCI_AT));
            vlan = Some(VlanId::new(tci)?);
        }
        let rule = FlowRule { mac: MacAddr::new(self.take(HEADER_AT)), vlan, queue };
        // What is matched is this and nothing else. Behind a mask of zeros anything may
        // stand.
        let ours = Self::insert(&rule, self.location());
        let is_alike = kind & !FLOW_EXT == ETHER_FLOW
            && self.part(MASK_AT, HEADER_BYTES) == ours.part(MASK_AT, HEADER_BYTES)
            && (kind & FLOW_EXT == 0
                || self.part(MASK_EXTENSION_AT, EXTENSION_BYTES)
                    == ours.part(MASK_EXTENSION_AT, EXTENSION_BYTES));
        (is_alike && rule.mac.is_station()).then_some(rule)
    }

    /// The place of the rule in the device's table.
    pub(crate) fn location(&self) -> u32 {
        u32::from_ne_bytes(self.take(LOCATION_AT))
    }

    /// How many rules there are, and whether the driver chooses places for them, in the
    /// answer to `ETHTOOL_GRXCLSRLCNT`.
    pub(crate) fn count(&self) -> (u32, bool) {
        let data = u64::from_ne_bytes(self.take(DATA_AT));
        (u32::from_ne_bytes(self.take(COUNT_AT)), data & LETS_DRIVER_CHOOSE != 0)
    }

    fn part(&self, at: usize, bytes: usize) -> &[u8] {
        self.0.get(at..at + bytes).unwrap_or_default()
    }

    fn take<const N: usize>(&self, at: usize) -> [u8; N] {
        self.part(at, N).first_chunk().copied().unwrap_or([0; N])
    }

    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(room) = self.0.get_mut(at..at + N) {
            room.copy_from_slice(&bytes);
        }
    }
}

/// Locations of rules and the size of the table, in the answer to `ETHTOOL_GRXCLSRLALL`:
/// a `struct ethtool_rxnfc` with locations behind it.
pub(crate) fn table(answer: &[u8]) -> Option<(Vec<u32>, u64)> {
    let request = FlowRequest(*answer.first_chunk()?);
    let size = u64::from_ne_bytes(request.take(DATA_AT));
    let (count, _) = request.count();
    let places = answer.get(LOCATIONS_AT..)?.chunks_exact(4).take(count as usize);
    let places = places.filter_map(|four| four.first_chunk().copied().map(u32::from_ne_bytes));
    Some((places.collect(), size))
}

/// A request for all locations, of which there is room for so many.
pub(crate) fn table_request(room: u32) -> Vec<u8> {
    let mut request = FlowRequest::empty();
    request.put(COUNT_AT, room.to_ne_bytes());
    let mut bytes = request.0.to_vec();
    bytes.resize((LOCATIONS_AT + room as usize * 4).max(REQUEST_BYTES), 0);
    bytes
}

#[cfg(test)]
#[path = "flow_rules_tests.rs"]
mod tests;
