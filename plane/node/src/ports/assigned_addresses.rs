//! MAC addresses that the daemon assigns to NICs without `mac`.
//!
//! TAP NICs and NICs of VMs get a random address when they are added. From then on, the address is
//! part of the desired configuration, as if it were configured. For other NICs see
//! `bound_addresses`.

use std::collections::BTreeSet;

use suimon_contract::{HostConfig, NicBackend, NicConfig};
use suimon_frame::MacAddr;

use crate::RandomSource;

/// Returns true if the daemon chooses the address of a NIC without `mac`: the device is a TAP, or
/// QEMU emulates the device in a VM.
fn has_chosen_address(config: &HostConfig, nic: &NicConfig) -> bool {
    nic.backend == NicBackend::Tap || config.vms.iter().any(|vm| vm.nics.contains(&nic.name))
}

/// Assigns an address to each NIC of `config` that needs one and has none. A NIC keeps its address
/// in `current`. A NIC that needs an address and has none in `current` keeps none, because its
/// guest already uses an unknown address.
pub(crate) fn assign_addresses(
    config: &mut HostConfig,
    current: &HostConfig,
    random: &RandomSource,
) {
    let mut used_addresses: BTreeSet<MacAddr> =
        config.nics.iter().filter_map(|nic| nic.mac).collect();
    for index in 0..config.nics.len() {
        let nic = &config.nics[index];
        if nic.mac.is_some() || !has_chosen_address(config, nic) {
            continue;
        }
        let before = current.nics.iter().find(|before| before.name == nic.name);
        let mac = match before {
            Some(NicConfig { mac: Some(mac), .. }) if !used_addresses.contains(mac) => *mac,
            Some(before) if before.mac.is_none() && has_chosen_address(current, before) => continue,
            _ => random_address(&used_addresses, random),
        };
        used_addresses.insert(mac);
        config.nics[index].mac = Some(mac);
    }
}

/// Returns a locally administered individual address (IEEE 802-2014, 8.4) that is not in
/// `used_addresses`.
fn random_address(used_addresses: &BTreeSet<MacAddr>, random: &RandomSource) -> MacAddr {
    let [first, second, rest @ ..] = random();
    let low = u32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]);
    let address = |attempt: u32| {
        let [a, b, c, d] = low.wrapping_add(attempt).to_be_bytes();
        MacAddr::new([first & 0xfc | 2, second, a, b, c, d])
    };
    // The number of NICs is far smaller than the number of addresses, so the search ends early.
    (0..u32::MAX).map(address).find(|mac| !used_addresses.contains(mac)).unwrap_or(address(0))
}

#[cfg(test)]
#[path = "assigned_addresses_tests.rs"]
mod tests;
