//! Configuration space of a network device (`struct virtio_net_config`, virtio 1.3, section 5.1.4),
//! for front-ends that request it from the back-end.

use suimon_frame::MacAddr;

/// Size in bytes of the implemented part of configuration space.
pub(crate) const CONFIG_BYTES: usize = 24;

/// Value of `VIRTIO_NET_S_LINK_UP`.
const LINK_UP: u16 = 1;

/// Contents of a NIC's configuration space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConfigSpace {
    /// MAC address; reported as zeros if it is `None`.
    pub(crate) mac: Option<MacAddr>,
    /// Maximum number of queue pairs (`max_virtqueue_pairs`).
    pub(crate) queue_pairs: u16,
    /// Maximum size of an IP packet in bytes.
    pub(crate) mtu: u16,
}

impl ConfigSpace {
    /// Returns `size` bytes at `offset`; an empty vector if configuration space does not contain
    /// all of them.
    pub(crate) fn read(&self, offset: u32, size: u32) -> Vec<u8> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        self.bytes().get(start..end).unwrap_or_default().to_vec()
    }

    /// Encodes all fields. The link is reported as up, with unknown speed and duplex mode, and
    /// without receive-side scaling.
    fn bytes(&self) -> [u8; CONFIG_BYTES] {
        let mac = self.mac.unwrap_or_default().octets();
        let fields: [&[u8]; 6] = [
            &mac,
            &LINK_UP.to_le_bytes(),
            &self.queue_pairs.to_le_bytes(),
            &self.mtu.to_le_bytes(),
            &u32::MAX.to_le_bytes(),
            &[u8::MAX],
        ];
        let mut space = [0; CONFIG_BYTES];
        for (to, from) in space.iter_mut().zip(fields.into_iter().flatten()) {
            *to = *from;
        }
        space
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_specification_puts_them() {
        let mac = "52:54:00:12:34:56".parse().ok();
        let space = ConfigSpace { mac, queue_pairs: 4, mtu: 9000 };
        assert_eq!(space.read(0, 6), [0x52, 0x54, 0, 0x12, 0x34, 0x56]);
        assert_eq!(space.read(6, 2), [1, 0]);
        assert_eq!(space.read(8, 2), [4, 0]);
        assert_eq!(space.read(10, 2), [0x28, 0x23]);
        assert_eq!(space.read(0, CONFIG_BYTES as u32).len(), CONFIG_BYTES);
        for (offset, size) in [(0, 25), (24, 1), (20, 5), (u32::MAX, 1), (0, u32::MAX)] {
            assert!(space.read(offset, size).is_empty(), "{offset} {size}");
        }
    }
}
