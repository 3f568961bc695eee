//! Driver's side of a split or packed ring.

use std::sync::Arc;

use suimon_frame::VNET_HEADER_BYTES;
use suimon_ring::{InterruptLine, RingSetup};

use super::packed::{IN_ORDER, PackedDriver, RING_PACKED};
use super::{Driver, Piece, Used, Vm, event};

/// Driver of a split or packed ring.
pub enum AnyDriver<'a> {
    Split(Box<Driver<'a>>),
    Packed(PackedDriver<'a>),
}

impl<'a> AnyDriver<'a> {
    /// Creates a ring whose indices are about to wrap around.
    pub fn new(vm: &'a Vm, size: u16, features: u64) -> Self {
        if features & RING_PACKED == 0 {
            return Self::Split(Box::new(Driver::starting_at(vm, size, 0xfffa)));
        }
        let mut driver = PackedDriver::starting_at(vm, size, size - 6);
        driver.in_order = features & IN_ORDER != 0;
        Self::Packed(driver)
    }

    pub fn in_copy<'b>(&self, vm: &'b Vm) -> AnyDriver<'b> {
        match self {
            Self::Split(driver) => AnyDriver::Split(Box::new(driver.in_copy(vm))),
            Self::Packed(driver) => AnyDriver::Packed(driver.in_copy(vm)),
        }
    }

    pub fn setup(&self, features: u64, call: &Arc<InterruptLine>) -> RingSetup {
        let kick = Arc::new(event());
        match self {
            Self::Split(driver) => driver.setup(features, Some(&kick), call),
            Self::Packed(driver) => driver.setup(features, Some(&kick), call),
        }
    }

    pub fn add(&mut self, lens: &[u32], writable: bool, bytes: &[u8]) -> Option<u16> {
        match self {
            Self::Split(driver) => driver.add(lens, false, writable, bytes),
            Self::Packed(driver) => driver.add(lens, false, writable, bytes),
        }
    }

    /// Makes a chain available whose first `readable` buffers are device-readable and whose others
    /// are device-writable.
    pub fn add_request(
        &mut self,
        lens: &[u32],
        readable: usize,
        indirect: bool,
        bytes: &[u8],
    ) -> Option<u16> {
        match self {
            Self::Split(driver) => driver.add_request(lens, readable, indirect, bytes),
            Self::Packed(driver) => driver.add_request(lens, readable, indirect, bytes),
        }
    }

    /// Returns the chains that the device has returned, in the order of the used elements.
    pub fn reap_any_order(&mut self) -> Vec<Used> {
        match self {
            Self::Split(driver) => driver.reap(),
            Self::Packed(driver) => {
                driver.any_order = true;
                driver.reap()
            }
        }
    }

    pub fn outstanding(&self) -> Vec<u16> {
        match self {
            Self::Split(driver) => driver.outstanding(),
            Self::Packed(driver) => driver.outstanding(),
        }
    }

    /// Returns the chains that the device has returned, in the order in which they were made
    /// available. With IN_ORDER the split driver detects a batch by the index alone.
    pub fn reap(&mut self, features: u64) -> Vec<Used> {
        let offered = self.outstanding();
        match self {
            Self::Split(driver) if features & IN_ORDER != 0 => driver.reap_in_order(),
            Self::Split(driver) => {
                let used = driver.reap();
                let heads: Vec<u16> = used.iter().map(|used| used.head).collect();
                assert_eq!(heads, offered[..heads.len()], "in order");
                used
            }
            Self::Packed(driver) => driver.reap(),
        }
    }

    /// Returns the buffers of a chain.
    pub fn pieces(&self, head: u16) -> &[Piece] {
        match self {
            Self::Split(driver) => &driver.pieces[usize::from(head)],
            Self::Packed(driver) => driver.pieces(head),
        }
    }

    pub fn contents(&self, head: u16, len: usize) -> Vec<u8> {
        match self {
            Self::Split(driver) => driver.contents(head, len),
            Self::Packed(driver) => driver.contents(head, len),
        }
    }

    /// Returns the frames in these buffers, reassembled by `num_buffers`.
    pub fn read_frames(&self, used: &[Used]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut entries = used.iter();
        while let Some(first) = entries.next() {
            let mut bytes = self.contents(first.head, first.len as usize);
            for _ in 1..u16::from_le_bytes([bytes[10], bytes[11]]) {
                let next = entries.next().unwrap();
                bytes.extend(self.contents(next.head, next.len as usize));
            }
            frames.push(bytes.split_off(VNET_HEADER_BYTES));
        }
        frames
    }
}
