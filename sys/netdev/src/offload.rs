//! Offloads of ports whose peer is the kernel: TAPs and packet sockets.

use core::sync::atomic::{AtomicU8, Ordering};

use suimon_frame::{Checksum, EgressForm, Frame, Offloads};
use suimon_ports::OffloadToggles;

/// All offloads that frames of a TAP or a packet socket can use.
pub(crate) const ALL: Offloads = Offloads { udp_segmentation: true, ..Offloads::TCP };

/// Returns the offloads that frames from the kernel may use. `switches` are those of the kernel's
/// side; for an uplink, [swapped](OffloadToggles::with_directions_swapped) ones.
pub(crate) fn ingress(switches: OffloadToggles, udp_segmentation: bool) -> Offloads {
    offloads(switches.tx_checksum, switches.segmentation, udp_segmentation)
}

/// Returns the offloads that frames to the kernel may use. The kernel accepts all of them; if one
/// is off in `switches`, frames are sent as a NIC without it would have received them.
pub(crate) fn egress(switches: OffloadToggles, udp_segmentation: bool) -> Offloads {
    offloads(switches.rx_checksum, switches.segmentation, udp_segmentation)
}

fn offloads(checksum: bool, segmentation: bool, udp_segmentation: bool) -> Offloads {
    // A large frame has a partial checksum, so it requires both switches.
    let large = checksum && segmentation;
    Offloads {
        checksum,
        tcp4_segmentation: large,
        tcp6_segmentation: large,
        tcp_ecn_segmentation: large,
        udp_segmentation: large && udp_segmentation,
    }
}

/// Restricts a received frame to the offloads `ingress` of its port: marks it as if it had arrived
/// without the others. This concerns frames that were queued when an offload was disabled, and
/// devices for which an offload cannot be disabled. Checksum completion and segmentation are done
/// and counted at the egress, as for all frames.
#[inline]
pub(crate) fn restrict(frame: &mut Frame, ingress: Offloads) {
    if ingress == ALL {
        return;
    }
    match (frame.meta.gso, frame.meta.checksum) {
        (Some(gso), _) if ingress.accepts(gso) => {}
        (Some(_), _) if ingress.checksum => frame.meta.egress_form = EgressForm::Segmented,
        (Some(_), _) => frame.meta.egress_form = EgressForm::Complete,
        (None, Checksum::Partial { .. }) if !ingress.checksum => {
            frame.meta.egress_form = EgressForm::Complete;
        }
        (None, Checksum::Verified) if !ingress.checksum => {
            frame.meta.checksum = Checksum::Unknown;
        }
        _ => {}
    }
}

/// Returns the flags `TUN_F_*` of the offloads, for
/// [`ioctl::TAP_OFFLOAD`](suimon_netif::ioctl::TAP_OFFLOAD).
pub(crate) fn tap_flags(offloads: Offloads) -> u32 {
    [
        (offloads.checksum, libc::TUN_F_CSUM),
        (offloads.tcp4_segmentation, libc::TUN_F_TSO4),
        (offloads.tcp6_segmentation, libc::TUN_F_TSO6),
        (offloads.tcp_ecn_segmentation, libc::TUN_F_TSO_ECN),
        // The kernel accepts only both flags together.
        (offloads.udp_segmentation, libc::TUN_F_USO4 | libc::TUN_F_USO6),
    ]
    .into_iter()
    .filter_map(|(is_on, flag)| is_on.then_some(flag))
    .fold(0, |flags, flag| flags | flag)
}

/// Set of offloads that one thread changes while others read it.
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
    use suimon_frame::VnetHeader;

    use super::*;

    #[test]
    fn switches_govern_their_direction_and_large_frames_need_checksums() {
        let all_on = OffloadToggles::default();
        assert_eq!(ingress(all_on, true), ALL);
        assert_eq!(egress(all_on, false), Offloads::TCP);
        let no_tx = OffloadToggles { tx_checksum: false, ..all_on };
        assert_eq!((ingress(no_tx, true), egress(no_tx, true)), (Offloads::NONE, ALL));
        let no_rx = OffloadToggles { rx_checksum: false, ..all_on };
        assert_eq!((ingress(no_rx, true), egress(no_rx, true)), (ALL, Offloads::NONE));
        let no_segmentation = OffloadToggles { segmentation: false, ..all_on };
        let checksum_only = Offloads { checksum: true, ..Offloads::NONE };
        assert_eq!(
            (ingress(no_segmentation, true), egress(no_segmentation, true)),
            (checksum_only, checksum_only)
        );
    }

    fn admitted(header: VnetHeader) -> Frame {
        // Ethernet, IPv4 and TCP without options, 3000 bytes of payload.
        let mut bytes = vec![0; 3054];
        bytes[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        bytes[16..18].copy_from_slice(&3040_u16.to_be_bytes());
        bytes[23] = 6;
        bytes[46] = 0x50;
        let mut frame = Frame::new(0);
        frame.set_bytes(&bytes);
        frame.validate_ingress(&header, ALL).unwrap();
        frame
    }

    #[test]
    fn offloads_disabled_at_the_ingress_restrict_the_egress_form() {
        let only_checksum = Offloads { checksum: true, ..Offloads::NONE };
        let partial = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            csum_start: 34,
            csum_offset: 16,
            ..VnetHeader::default()
        };
        let large = VnetHeader { gso_type: VnetHeader::GSO_TCPV4, gso_size: 1000, ..partial };
        let valid = VnetHeader { flags: VnetHeader::DATA_VALID, ..VnetHeader::default() };
        let restricted = |header, ingress| {
            let mut frame = admitted(header);
            restrict(&mut frame, ingress);
            (frame.meta.checksum, frame.meta.egress_form, frame.bytes()[50..52].to_vec())
        };
        let requested = Checksum::Partial { start: 34, offset: 16 };
        let payload = vec![0, 0];
        for (ingress, egress_form) in [
            (ALL, EgressForm::Any),
            (Offloads::TCP, EgressForm::Any),
            (only_checksum, EgressForm::Segmented),
            (Offloads::NONE, EgressForm::Complete),
        ] {
            assert_eq!(restricted(large, ingress), (requested, egress_form, payload.clone()));
        }
        for ingress in [ALL, only_checksum] {
            assert_eq!(restricted(partial, ingress), (requested, EgressForm::Any, payload.clone()));
            let verified = (Checksum::Verified, EgressForm::Any, payload.clone());
            assert_eq!(restricted(valid, ingress), verified);
        }
        // No checksum is computed here: the egress completes and counts it.
        let complete = (requested, EgressForm::Complete, payload.clone());
        assert_eq!(restricted(partial, Offloads::NONE), complete);
        let unproven = (Checksum::Unknown, EgressForm::Any, payload);
        assert_eq!(restricted(valid, Offloads::NONE), unproven);
    }

    #[test]
    fn stored_shared_offloads_are_loaded_unchanged() {
        for offloads in
            [ALL, Offloads::NONE, Offloads::TCP, Offloads { checksum: true, ..Offloads::NONE }]
        {
            assert_eq!(SharedOffloads::new(offloads).load(), offloads);
        }
    }
}
