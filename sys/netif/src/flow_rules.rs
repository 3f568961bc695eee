//! Encoding of flow rules that select the receive queue by destination address: `struct
//! ethtool_rxnfc` and its `struct ethtool_rx_flow_spec` (linux/ethtool.h), as set by ethtool(8)
//! with `-N`.
//!
//! This module performs no I/O; the calls are in [`crate::flow_calls`].

use suimon_frame::{MacAddr, VlanId};

/// Size in bytes of `struct ethtool_rxnfc` without the locations that may follow it.
pub const REQUEST_BYTES: usize = 192;
/// Offset in bytes of the list of rule locations in `struct ethtool_rxnfc`.
pub const LOCATIONS_AT: usize = 188;

// Offsets of the structure's fields; those of the flow specification begin at 16.
const DATA_AT: usize = 8;
const FLOW_TYPE_AT: usize = 16;
const HEADER_AT: usize = 20;
const HEADER_EXTENSION_AT: usize = 72;
const MASK_AT: usize = 92;
const MASK_EXTENSION_AT: usize = 144;
const QUEUE_AT: usize = 168;
const LOCATION_AT: usize = 176;
const COUNT_AT: usize = 184;

/// Size in bytes of `union ethtool_flow_union`, which begins with an Ethernet header.
const HEADER_BYTES: usize = 52;
/// Size in bytes of `struct ethtool_flow_ext`.
const EXTENSION_BYTES: usize = 20;
const TCI_AT: usize = 10;

const ETHER_FLOW: u32 = 0x12;
const FLOW_EXT: u32 = 1 << 31;
/// Mask of the VLAN ID in the tag control information.
const VLAN_MASK: [u8; 2] = 0x0fff_u16.to_be_bytes();

/// `RX_CLS_LOC_ANY`: the driver chooses the location.
pub const ANY_LOCATION: u32 = u32::MAX;
/// Bit of the table size that the driver sets if it can choose the locations of rules
/// (`RX_CLS_LOC_SPECIAL`).
const LETS_DRIVER_CHOOSE: u64 = 1 << 31;

/// Size and properties of a device's table of flow rules: reply to `ETHTOOL_GRXCLSRLCNT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTableInfo {
    /// Number of rules in the device's table.
    pub rule_count: u32,
    /// True if the driver chooses the locations of rules.
    pub driver_assigns_locations: bool,
}

/// Flow rule: the device puts frames with this destination address, in one VLAN or in any, into a
/// receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRule {
    /// Destination MAC address of the frames.
    pub mac: MacAddr,
    /// VLAN of the frames; `None` for frames of any VLAN and untagged ones.
    pub vlan: Option<VlanId>,
    /// Receive queue of the device.
    pub queue: u16,
}

/// `struct ethtool_rxnfc`: argument of an ethtool command for flow rules. [`crate::flow_calls`]
/// sets its first four bytes, the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRequest(pub(crate) [u8; REQUEST_BYTES]);

impl FlowRequest {
    /// Creates a request that refers to no rule.
    pub const fn empty() -> Self {
        Self([0; REQUEST_BYTES])
    }

    /// Creates a request for the rule at this location.
    pub fn for_location(location: u32) -> Self {
        let mut request = Self::empty();
        request.put(LOCATION_AT, location.to_ne_bytes());
        request
    }

    /// Creates a request to insert this rule at a location, or at [`ANY_LOCATION`].
    pub fn for_insert(rule: &FlowRule, location: u32) -> Self {
        let mut request = Self::for_location(location);
        let extended = if rule.vlan.is_some() { FLOW_EXT } else { 0 };
        request.put(FLOW_TYPE_AT, (ETHER_FLOW | extended).to_ne_bytes());
        // An Ethernet header begins with the destination address.
        request.put(HEADER_AT, rule.mac.octets());
        request.put(MASK_AT, [0xff; 6]);
        if let Some(vlan) = rule.vlan {
            request.put(HEADER_EXTENSION_AT + TCI_AT, vlan.get().to_be_bytes());
            request.put(MASK_EXTENSION_AT + TCI_AT, VLAN_MASK);
        }
        request.put(QUEUE_AT, u64::from(rule.queue).to_ne_bytes());
        request
    }

    /// Decodes the rule in a reply. Returns `None` for rules that [`FlowRequest::for_insert`] does
    /// not create.
    pub fn rule(&self) -> Option<FlowRule> {
        let kind = u32::from_ne_bytes(self.take(FLOW_TYPE_AT));
        let queue = u16::try_from(u64::from_ne_bytes(self.take(QUEUE_AT))).ok()?;
        let mut vlan = None;
        if kind & FLOW_EXT != 0 && self.take(MASK_EXTENSION_AT + TCI_AT) == VLAN_MASK {
            let tci = u16::from_be_bytes(self.take(HEADER_EXTENSION_AT + TCI_AT));
            vlan = Some(VlanId::new(tci)?);
        }
        let rule = FlowRule { mac: MacAddr::new(self.take(HEADER_AT)), vlan, queue };
        // The rule must match on these fields only. Fields with a zero mask may have any value.
        let expected = Self::for_insert(&rule, self.location());
        let is_alike = kind & !FLOW_EXT == ETHER_FLOW
            && self.part(MASK_AT, HEADER_BYTES) == expected.part(MASK_AT, HEADER_BYTES)
            && (kind & FLOW_EXT == 0
                || self.part(MASK_EXTENSION_AT, EXTENSION_BYTES)
                    == expected.part(MASK_EXTENSION_AT, EXTENSION_BYTES));
        (is_alike && rule.mac.is_station()).then_some(rule)
    }

    /// Returns the location of the reply's rule in the device's table.
    pub fn location(&self) -> u32 {
        u32::from_ne_bytes(self.take(LOCATION_AT))
    }

    /// Decodes the reply to `ETHTOOL_GRXCLSRLCNT`.
    pub fn table_info(&self) -> FlowTableInfo {
        let data = u64::from_ne_bytes(self.take(DATA_AT));
        FlowTableInfo {
            rule_count: u32::from_ne_bytes(self.take(COUNT_AT)),
            driver_assigns_locations: data & LETS_DRIVER_CHOOSE != 0,
        }
    }

    fn part(&self, offset: usize, bytes: usize) -> &[u8] {
        self.0.get(offset..offset + bytes).unwrap_or_default()
    }

    fn take<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.part(offset, N).first_chunk().copied().unwrap_or([0; N])
    }

    fn put<const N: usize>(&mut self, offset: usize, bytes: [u8; N]) {
        if let Some(field) = self.0.get_mut(offset..offset + N) {
            field.copy_from_slice(&bytes);
        }
    }
}

/// Decodes the reply to `ETHTOOL_GRXCLSRLALL`, a `struct ethtool_rxnfc` followed by rule locations.
/// Returns the locations, and the size of the device's table in rules; `None` if the reply is too
/// short.
pub fn decode_rule_locations(answer: &[u8]) -> Option<(Vec<u32>, u64)> {
    let request = FlowRequest(*answer.first_chunk()?);
    let size = u64::from_ne_bytes(request.take(DATA_AT));
    let count = request.table_info().rule_count;
    let fields = answer.get(LOCATIONS_AT..)?.chunks_exact(4).take(count as usize);
    let locations = fields.filter_map(|four| four.first_chunk().copied().map(u32::from_ne_bytes));
    Some((locations.collect(), size))
}

/// Creates a request for the locations of at most `capacity` rules.
pub fn rule_locations_request(capacity: u32) -> Vec<u8> {
    let mut request = FlowRequest::empty();
    request.put(COUNT_AT, capacity.to_ne_bytes());
    let mut bytes = request.0.to_vec();
    bytes.resize((LOCATIONS_AT + capacity as usize * 4).max(REQUEST_BYTES), 0);
    bytes
}

#[cfg(test)]
#[path = "flow_rules_tests.rs"]
mod tests;
