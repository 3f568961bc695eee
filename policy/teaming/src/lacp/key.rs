//! Operational keys: which members may aggregate at all.

use super::{LacpSpec, Link};

/// Bits of the key that tell the speed.
const SPEED_BITS: u32 = 5;
/// Stands for a speed that is not in the list; such members do aggregate.
const OTHER_SPEED: u16 = (1 << SPEED_BITS) - 1;
/// Megabits per second, in order; 0 in the key is "of any speed".
const SPEEDS: [u32; 17] = [
    0, 10, 100, 1_000, 2_500, 5_000, 10_000, 14_000, 20_000, 25_000, 40_000, 50_000, 56_000,
    100_000, 200_000, 400_000, 800_000,
];

/// The largest administrative key: what the speed leaves of 16 bits.
pub(crate) const ADMIN_KEY_MAX: u16 = (1 << (16 - SPEED_BITS)) - 1;

/// The operational key (IEEE 802.1AX-2014, 6.3.5): links of one key are those
/// that could aggregate, so a link's speed is part of it unless speeds may mix.
pub(crate) fn operational_key(spec: &LacpSpec, link: Option<Link>) -> u16 {
    let speed = match link {
        Some(link) if !spec.mixed_speeds => SPEEDS
            .iter()
            .position(|speed| *speed == link.speed_mbps)
            .and_then(|at| u16::try_from(at + 1).ok())
            .unwrap_or(OTHER_SPEED),
        _ => 0,
    };
    spec.admin_key << SPEED_BITS | speed
}
