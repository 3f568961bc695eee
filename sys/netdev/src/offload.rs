//! What a kernel-side port hands over and takes.

use core::sync::atomic::{AtomicU8, Ordering};

use suimon_frame::Offloads;
use suimon_ports::OffloadSwitches;

/// All that a TAP or a packet socket can carry.
pub(crate) const ALL: Offloads = Offloads { udp_segmentation: true, ..Offloads::TCP };

/// What the kernel's side may hand us.
pub(crate) fn ingress(switches: OffloadSwitches, udp_segmentation: bool) -> Offloads {
    of(switches.tx_checksum, switches.segmentation, udp_segmentation)
}

/// What we may hand the kernel's side. It takes every form: where the switches
/// say no, it is given what a plain NIC would have received.
pub(crate) fn egress(switches: OffloadSwitches, udp_segmentation: bool) -> Offloads {
    of(switches.rx_checksum, switches.segmentation, udp_segmentation)
}

fn of(checksum: bool, segmentation: bool, udp_segmentation: bool) -> Offloads {
    // A large frame has a partial checksum, so it needs both switches.
    let large = checksum && segmentation;
    Offloads {
        checksum,
        tcp4_segmentation: large,
        tcp6_segmentation: large,
        tcp_ecn_segmentation: large,
        udp_segmentation: large && udp_segmentation,
    }
}

/// `TUN_F_*` for [`ioctl::TAP_OFFLOAD`](crate::ioctl::TAP_OFFLOAD).
pub(crate) fn tap_flags(offloads: Offloads) -> u32 {
    [
        (offloads.checksum, libc::TUN_F_CSUM),
        (offloads.tcp4_segmentation, libc::TUN_F_TSO4),
        (offloads.tcp6_segmentation, libc::TUN_F_TSO6),
        (offloads.tcp_ecn_segmentation, libc::TUN_F_TSO_ECN),
        // The kernel takes both or neither.
        (offloads.udp_segmentation, libc::TUN_F_USO4 | libc::TUN_F_USO6),
    ]
    .into_iter()
    .filter_map(|(on, flag)| on.then_some(flag))
    .fold(0, |flags, flag| flags | flag)
}

/// Offloads that one thread changes while others read them.
#[derive(Debug, Default)]
pub(crate) struct SharedOffloads(AtomicU8);

impl SharedOffloads {
    pub(crate) fn new(offloads: Offloads) -> Self {
        let shared = Self::default();
        shared.store(offloads);
        shared
    }

    pub(crate) fn store(&self, offloads: Offloads) {
        self.0.store(offloads.to_bits(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn load(&self) -> Offloads {
        Offloads::from_bits(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_govern_their_direction_and_large_frames_need_checksums() {
        let all = OffloadSwitches::default();
        assert_eq!(ingress(all, true), ALL);
        assert_eq!(egress(all, false), Offloads::TCP);
        let no_tx = OffloadSwitches { tx_checksum: false, ..all };
        assert_eq!((ingress(no_tx, true), egress(no_tx, true)), (Offloads::NONE, ALL));
        let no_rx = OffloadSwitches { rx_checksum: false, ..all };
        assert_eq!((ingress(no_rx, true), egress(no_rx, true)), (ALL, Offloads::NONE));
        let small = OffloadSwitches { segmentation: false, ..all };
        let only = Offloads { checksum: true, ..Offloads::NONE };
        assert_eq!((ingress(small, true), egress(small, true)), (only, only));
    }

    #[test]
    fn shared_offloads_come_back_as_they_were() {
        for offloads in
            [ALL, Offloads::NONE, Offloads::TCP, Offloads { checksum: true, ..Offloads::NONE }]
        {
            assert_eq!(SharedOffloads::new(offloads).load(), offloads);
        }
    }
}
