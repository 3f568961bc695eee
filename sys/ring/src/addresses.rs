//! Size and addresses of a ring.

/// Maximum queue size in entries (virtio 1.3, sections 2.7 and 2.8).
pub const QUEUE_SIZE_MAX: u16 = 32_768;

/// Addresses of a ring's areas in the front-end's address space (vhost-user,
/// `VHOST_USER_SET_VRING_ADDR`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingAddresses {
    /// Address of the descriptor table; packed ring: of the descriptor ring.
    pub descriptors: u64,
    /// Address of the available ring; packed ring: of the driver's event suppression structure.
    pub available: u64,
    /// Address of the used ring; packed ring: of the device's event suppression structure.
    pub used: u64,
}
