//! Operational keys, which determine the members that may aggregate.

use super::constants::SPEED_BITS;
use super::{LacpSpec, Link};

/// Code of a speed that is not in [`SPEEDS`]. Members with this code can aggregate with each other.
const OTHER_SPEED: u16 = (1 << SPEED_BITS) - 1;
/// Link speeds in Mbit/s in ascending order. The code of a speed is its index plus one; code 0
/// means any speed.
const SPEEDS: [u32; 17] = [
    0, 10, 100, 1_000, 2_500, 5_000, 10_000, 14_000, 20_000, 25_000, 40_000, 50_000, 56_000,
    100_000, 200_000, 400_000, 800_000,
];

/// Returns the operational key of a port (IEEE 802.1AX-2014, 6.3.5) whose link has, or last had,
/// the properties `link`. Links with the same key can aggregate, so the key includes the speed
/// unless mixed speeds are permitted.
pub(crate) fn operational_key(spec: &LacpSpec, link: Option<Link>) -> u16 {
    let speed = match link {
        Some(link) if !spec.mixed_speeds_allowed => SPEEDS
            .iter()
            .position(|speed| *speed == link.speed_mbps)
            .and_then(|index| u16::try_from(index + 1).ok())
            .unwrap_or(OTHER_SPEED),
        _ => 0,
    };
    spec.admin_key << SPEED_BITS | speed
}
