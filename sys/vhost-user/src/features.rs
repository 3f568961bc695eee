//! Which features a NIC and a disk offer.

use suimon_frame::Offloads;
use suimon_ports::OffloadSwitches;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_CONFIG_WCE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH,
    VIRTIO_BLK_F_MQ, VIRTIO_BLK_F_RO, VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_TOPOLOGY,
    VIRTIO_BLK_F_WRITE_ZEROES,
};
use virtio_bindings::virtio_config::{
    VIRTIO_F_ANY_LAYOUT, VIRTIO_F_IN_ORDER, VIRTIO_F_NOTIFY_ON_EMPTY, VIRTIO_F_RING_PACKED,
    VIRTIO_F_VERSION_1,
};
use virtio_bindings::virtio_net::{
    VIRTIO_NET_F_CSUM, VIRTIO_NET_F_CTRL_VQ, VIRTIO_NET_F_GUEST_ANNOUNCE, VIRTIO_NET_F_GUEST_CSUM,
    VIRTIO_NET_F_GUEST_ECN, VIRTIO_NET_F_GUEST_TSO4, VIRTIO_NET_F_GUEST_TSO6,
    VIRTIO_NET_F_GUEST_USO4, VIRTIO_NET_F_GUEST_USO6, VIRTIO_NET_F_HOST_ECN,
    VIRTIO_NET_F_HOST_TSO4, VIRTIO_NET_F_HOST_TSO6, VIRTIO_NET_F_HOST_USO, VIRTIO_NET_F_MAC,
    VIRTIO_NET_F_MQ, VIRTIO_NET_F_MRG_RXBUF, VIRTIO_NET_F_MTU, VIRTIO_NET_F_STATUS,
};
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

use crate::fault::DeviceFault;
use crate::request::Request;

/// Bits of vhost-user's own features.
pub mod protocol {
    /// The virtio feature bit that asks for a log of all pages written.
    pub const LOG_ALL_BIT: u32 = 26;
    /// The virtio feature bit that says protocol features exist.
    pub const FEATURES_BIT: u32 = 30;
    /// Several queue pairs.
    pub const MQ: u64 = 1 << 0;
    /// A log of written pages, for migration.
    pub const LOG_SHMFD: u64 = 1 << 1;
    /// The front-end asks us to announce the guest after a migration.
    pub const RARP: u64 = 1 << 2;
    /// Acknowledgements on request.
    pub const REPLY_ACK: u64 = 1 << 3;
    /// The front-end tells us the guest's MTU.
    pub const NET_MTU: u64 = 1 << 4;
    /// We may make requests.
    pub const BACKEND_REQ: u64 = 1 << 5;
    /// We hold the configuration space.
    pub const CONFIG: u64 = 1 << 9;
    /// The front-end keeps the record of what is in flight for us.
    pub const INFLIGHT_SHMFD: u64 = 1 << 12;
    /// `RESET_DEVICE`.
    pub const RESET_DEVICE: u64 = 1 << 13;
    /// Memory regions one by one.
    pub const CONFIGURE_MEM_SLOTS: u64 = 1 << 15;
    /// Virtio device status.
    pub const STATUS: u64 = 1 << 16;
}

/// Whether the protocol feature that `request` belongs to was negotiated.
/// Requests that front-ends have always sent without asking are let pass.
pub(crate) fn check_negotiated(request: Request, negotiated: u64) -> Result<(), DeviceFault> {
    let needed = match request {
        Request::SetBackendReqFd => protocol::BACKEND_REQ,
        Request::SetLogBase | Request::SetLogFd => protocol::LOG_SHMFD,
        Request::GetInflightFd | Request::SetInflightFd => protocol::INFLIGHT_SHMFD,
        _ => 0,
    };
    if negotiated & needed == needed {
        return Ok(());
    }
    Err(DeviceFault::NotNegotiated { request, bit: needed.trailing_zeros() })
}

/// What is offered to a front-end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Virtio feature bits.
    pub features: u64,
    /// vhost-user protocol feature bits.
    pub protocol: u64,
    /// Queue pairs; of a disk queues.
    pub queue_pairs: u16,
}

impl Offer {
    /// The offer of a NIC: everything implemented, less what is switched off,
    /// plus `frozen`: what its VM has negotiated already and would miss.
    ///
    /// `has_mac`: we know the guest's address. Then we also offer the
    /// configuration space, so that a front-end without an address of its own
    /// can ask for it.
    pub fn new(queue_pairs: u16, has_mac: bool, switches: &OffloadSwitches, frozen: u64) -> Self {
        let mut features = bits(&[
            VIRTIO_F_VERSION_1,
            VIRTIO_F_ANY_LAYOUT,
            VIRTIO_F_NOTIFY_ON_EMPTY,
            VIRTIO_RING_F_EVENT_IDX,
            VIRTIO_RING_F_INDIRECT_DESC,
            VIRTIO_NET_F_MRG_RXBUF,
            VIRTIO_NET_F_MTU,
            VIRTIO_NET_F_STATUS,
            VIRTIO_F_RING_PACKED,
            VIRTIO_F_IN_ORDER,
            // A guest that has it announces itself after a migration; for others
            // the front-end asks us to (`SEND_RARP`).
            VIRTIO_NET_F_GUEST_ANNOUNCE,
            protocol::LOG_ALL_BIT,
            protocol::FEATURES_BIT,
        ]);
        let mut protocol = protocol::MQ
            | protocol::LOG_SHMFD
            | protocol::INFLIGHT_SHMFD
            | protocol::RARP
            | protocol::REPLY_ACK
            | protocol::NET_MTU
            | protocol::BACKEND_REQ
            | protocol::RESET_DEVICE
            | protocol::CONFIGURE_MEM_SLOTS
            | protocol::STATUS;
        if queue_pairs > 1 {
            // MQ depends on the control queue, which the front-end itself serves
            // (virtio 1.3, section 5.1.3.1).
            features |= bits(&[VIRTIO_NET_F_MQ, VIRTIO_NET_F_CTRL_VQ]);
        }
        if has_mac {
            features |= bits(&[VIRTIO_NET_F_MAC]);
            protocol |= protocol::CONFIG;
        }
        features |= offload_bits(switches);
        let all = offload_bits(&OffloadSwitches::default());
        Self { features: features | (frozen & all), protocol, queue_pairs }
    }

    /// The offer of a disk: everything implemented, as far as it can be written, plus
    /// `frozen`: what its VM has negotiated already and would miss. Buffers are not
    /// returned in order.
    pub fn disk(queues: u16, is_read_only: bool, frozen: u64) -> Self {
        let mut features = bits(&[
            VIRTIO_F_VERSION_1,
            VIRTIO_F_ANY_LAYOUT,
            VIRTIO_F_NOTIFY_ON_EMPTY,
            VIRTIO_RING_F_EVENT_IDX,
            VIRTIO_RING_F_INDIRECT_DESC,
            VIRTIO_F_RING_PACKED,
            VIRTIO_BLK_F_SEG_MAX,
            VIRTIO_BLK_F_BLK_SIZE,
            VIRTIO_BLK_F_TOPOLOGY,
            VIRTIO_BLK_F_FLUSH,
            VIRTIO_BLK_F_CONFIG_WCE,
            protocol::LOG_ALL_BIT,
            protocol::FEATURES_BIT,
        ]);
        let writing = bits(&[VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_WRITE_ZEROES]);
        features |= if is_read_only { bits(&[VIRTIO_BLK_F_RO]) } else { writing };
        if queues > 1 {
            features |= bits(&[VIRTIO_BLK_F_MQ]);
        }
        let protocol = protocol::MQ
            | protocol::LOG_SHMFD
            | protocol::INFLIGHT_SHMFD
            | protocol::REPLY_ACK
            | protocol::BACKEND_REQ
            | protocol::CONFIG
            | protocol::RESET_DEVICE
            | protocol::CONFIGURE_MEM_SLOTS
            | protocol::STATUS;
        // A VM whose disk is read-only now gets errors where it discards, as where it
        // writes.
        let all = writing | bits(&[VIRTIO_BLK_F_MQ]);
        Self { features: features | (frozen & all), protocol, queue_pairs: queues }
    }
}

/// The features that stand for what the switches allow. Segmentation needs the
/// checksum of the same direction.
fn offload_bits(switches: &OffloadSwitches) -> u64 {
    let mut features = 0;
    if switches.tx_checksum {
        features |= bits(&[VIRTIO_NET_F_CSUM]);
        if switches.segmentation {
            features |= bits(&[
                VIRTIO_NET_F_HOST_TSO4,
                VIRTIO_NET_F_HOST_TSO6,
                VIRTIO_NET_F_HOST_ECN,
                VIRTIO_NET_F_HOST_USO,
            ]);
        }
    }
    if switches.rx_checksum {
        features |= bits(&[VIRTIO_NET_F_GUEST_CSUM]);
        if switches.segmentation {
            features |= bits(&[
                VIRTIO_NET_F_GUEST_TSO4,
                VIRTIO_NET_F_GUEST_TSO6,
                VIRTIO_NET_F_GUEST_ECN,
                VIRTIO_NET_F_GUEST_USO4,
                VIRTIO_NET_F_GUEST_USO6,
            ]);
        }
    }
    features
}

/// What may be handed to the guest under these switches, of what it negotiated.
pub(crate) fn egress_allowed(switches: &OffloadSwitches) -> Offloads {
    match (switches.rx_checksum, switches.segmentation) {
        (false, _) => Offloads::NONE,
        (true, false) => Offloads { checksum: true, ..Offloads::NONE },
        (true, true) => Offloads { udp_segmentation: true, ..Offloads::TCP },
    }
}

fn bits(numbers: &[u32]) -> u64 {
    numbers.iter().fold(0, |bits, number| bits | 1 << number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: OffloadSwitches = OffloadSwitches {
        tx_checksum: false,
        rx_checksum: false,
        tx_ip_checksum: false,
        rx_ip_checksum: false,
        segmentation: false,
        receive_coalescing: false,
    };

    #[test]
    fn switches_take_features_away_unless_the_vm_has_them() {
        let all = Offer::new(1, false, &OffloadSwitches::default(), 0);
        let none = Offer::new(1, false, &OFF, 0);
        let no_segmentation =
            Offer::new(1, false, &OffloadSwitches { segmentation: false, ..Default::default() }, 0);
        assert_eq!(all.features & !none.features, offload_bits(&OffloadSwitches::default()));
        assert_eq!(
            no_segmentation.features & !none.features,
            bits(&[VIRTIO_NET_F_CSUM, VIRTIO_NET_F_GUEST_CSUM])
        );
        let no_checksum =
            Offer::new(1, false, &OffloadSwitches { tx_checksum: false, ..Default::default() }, 0);
        assert_eq!(no_checksum.features & bits(&[VIRTIO_NET_F_HOST_TSO4]), 0);
        assert_ne!(no_checksum.features & bits(&[VIRTIO_NET_F_GUEST_TSO4]), 0);
        // A VM that runs with everything is offered everything again, and nothing
        // that does not exist.
        assert_eq!(Offer::new(1, false, &OFF, u64::MAX).features, all.features);
    }

    #[test]
    fn several_queues_and_an_address_bring_their_features() {
        let one = Offer::new(1, false, &OFF, 0);
        let many = Offer::new(4, true, &OFF, 0);
        let expected = bits(&[VIRTIO_NET_F_MQ, VIRTIO_NET_F_CTRL_VQ, VIRTIO_NET_F_MAC]);
        assert_eq!(many.features ^ one.features, expected);
        assert_eq!(many.protocol ^ one.protocol, protocol::CONFIG);
    }
}
