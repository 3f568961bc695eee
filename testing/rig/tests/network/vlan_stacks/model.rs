//! VLAN tags of frames, ports of the switch, and the documented forwarding of tagged frames.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// Types of VLAN tags (TPIDs) that the exhaustive stacks consist of.
pub(super) const TYPES: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// VLANs that the exhaustive stacks consist of.
pub(super) const VLANS: [u16; 4] = [0, 20, 30, 50];
/// Types of VLAN tags that switches interpret.
const KNOWN_TYPES: [u16; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];

/// VLAN tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag {
    pub(super) kind: u16,
    /// Priority, drop-eligible bit and VLAN.
    pub(super) tci: u16,
}

/// Tags of a frame, the outermost first.
pub(super) type Stack = Vec<Tag>;

impl Tag {
    pub(super) fn new(kind: u16, vlan: u16) -> Self {
        Self { kind, tci: vlan }
    }

    pub(super) fn vlan(self) -> u16 {
        self.tci & 0xfff
    }

    pub(super) fn is_known(kind: u16) -> bool {
        KNOWN_TYPES.contains(&kind)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x} {}", self.kind, self.vlan())?;
        if self.tci > 0xfff { write!(f, " tci {:04x}", self.tci) } else { Ok(()) }
    }
}

/// Returns every stack of at most `tags_max` tags.
pub(super) fn all_stacks(tags_max: usize) -> Vec<Stack> {
    let mut stacks = vec![Stack::new()];
    let mut last = stacks.clone();
    for _ in 0..tags_max {
        let longer = |stack: &Stack| {
            let stack = stack.clone();
            let tags = TYPES.into_iter().flat_map(|kind| VLANS.map(|vlan| Tag::new(kind, vlan)));
            tags.map(move |tag| [&stack[..], &[tag]].concat())
        };
        last = last.iter().flat_map(longer).collect();
        stacks.extend(last.iter().cloned());
    }
    stacks
}

/// Returns stacks of one to three tags with any VLAN, priority and type; the same in each run.
pub(super) fn random_stacks(count: usize) -> Vec<Stack> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |limit: usize| {
        // xorshift64 (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % limit
    };
    let mut tag = |_| {
        // Half of the VLANs are those of the ports.
        let vlan = if next(2) == 0 { VLANS[next(VLANS.len())] } else { next(1 << 12) as u16 };
        Tag { kind: KNOWN_TYPES[next(KNOWN_TYPES.len())], tci: vlan | (next(16) << 12) as u16 }
    };
    (0..count).map(|number| (0..=number % 3).map(&mut tag).collect()).collect()
}

/// Port of the switch.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) name: &'static str,
    /// VLAN of untagged frames; 0 is the untagged network.
    pub(super) untagged: u16,
    /// VLANs of tagged frames.
    pub(super) tagged: RangeInclusive<u16>,
    /// Lines of its `[[nic]]` in a host file; `None` for the uplink.
    pub(super) keys: Option<String>,
}

#[allow(clippy::reversed_empty_ranges, reason = "no tagged VLAN")]
const NO_VLANS: RangeInclusive<u16> = 1..=0;

impl Port {
    fn nic(name: &'static str, untagged: u16, trunk: RangeInclusive<u16>) -> Self {
        let mut keys = String::new();
        if untagged > 0 {
            keys.push_str(&format!("vlan = {untagged}\n"));
        }
        if !trunk.is_empty() {
            keys.push_str(&format!("trunk = [\"{}-{}\"]\n", trunk.start(), trunk.end()));
        }
        Self { name, untagged, tagged: trunk, keys: Some(keys) }
    }

    /// Returns an access port of a VLAN.
    pub(super) fn access(name: &'static str, vlan: u16) -> Self {
        Self::nic(name, vlan, NO_VLANS)
    }

    /// Returns a trunk port. Without a native VLAN (0), its untagged frames are those of the
    /// untagged network.
    pub(super) fn trunk(name: &'static str, vlans: RangeInclusive<u16>, native: u16) -> Self {
        Self::nic(name, native, vlans)
    }

    /// Returns the uplink, which carries every VLAN and the untagged network.
    pub(super) fn uplink(name: &'static str) -> Self {
        Self { name, untagged: 0, tagged: 1..=4094, keys: None }
    }

    pub(super) fn is_access(&self) -> bool {
        self.tagged.is_empty()
    }

    /// Returns true if the port may use a VLAN.
    pub(super) fn carries(&self, vlan: u16) -> bool {
        self.untagged == vlan || self.tagged.contains(&vlan)
    }

    /// Returns the VLAN of a frame from the port, and the tags inside that are payload to the
    /// switch; `None` if the frame is dropped.
    pub(super) fn classify(&self, stack: &[Tag]) -> Option<(u16, Stack)> {
        match stack {
            [first, inner @ ..] if first.kind == 0x8100 && first.vlan() > 0 => {
                let is_carried = !self.is_access() && self.carries(first.vlan());
                is_carried.then(|| (first.vlan(), inner.to_vec()))
            }
            [] => Some((self.untagged, Stack::new())),
            [first] if first.kind == 0x8100 => Some((self.untagged, Stack::new())),
            _ => None,
        }
    }

    /// Returns the tags of a frame of `vlan` when it is sent to this port; `None` if the port does
    /// not get it. `received` are the tags with which the switch received the frame, `inner` those
    /// that are payload to it.
    pub(super) fn present(&self, vlan: u16, inner: &[Tag], received: &[Tag]) -> Option<Stack> {
        if !self.carries(vlan) {
            return None;
        }
        if self.untagged == vlan {
            let is_guest = self.is_access() && self.keys.is_some();
            return (inner.is_empty() || is_guest).then(|| inner.to_vec());
        }
        // The priority is kept.
        let bits = received.first().map_or(0, |tag| tag.tci & 0xf000);
        Some([&[Tag { kind: 0x8100, tci: bits | vlan }], inner].concat())
    }
}

/// Tags with which each receiver gets a frame, by the receiver's index among the ports.
pub(super) type Observation = BTreeMap<usize, Stack>;

/// Destination of a frame: a port by its index, or all ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    All,
    Port(usize),
}

/// Returns the receivers of a frame according to the documentation. The last port is the uplink, to
/// which the switch also sends frames for NICs that do not carry the VLAN.
pub(super) fn documented(
    ports: &[Port],
    sender: usize,
    destination: Destination,
    stack: &[Tag],
) -> Observation {
    let Some((vlan, inner)) = ports[sender].classify(stack) else { return Observation::new() };
    let receivers = match destination {
        Destination::All => 0..ports.len(),
        Destination::Port(port) if ports[port].carries(vlan) => port..port + 1,
        Destination::Port(_) => ports.len() - 1..ports.len(),
    };
    let receivers = receivers.filter(|receiver| *receiver != sender);
    receivers
        .filter_map(|receiver| Some((receiver, ports[receiver].present(vlan, &inner, stack)?)))
        .collect()
}
