//! Guest memory with arbitrary contents and one ring, for the oracles of split and packed rings.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use suimon_ring::{
    DirtyLog, GuestMemory, InflightLayout, InflightRegion, InterruptLine, RegionSpec,
    RingAddresses, RingFeatures, RingLog, RingSetup, RingTracking,
};

/// Size of the guest's memory in bytes.
pub const MEMORY_BYTES: usize = 0x4_0000;
/// Number of pages of the memory. The dirty log has one bit per page.
const PAGES: usize = MEMORY_BYTES / 4096;
const LOG_BYTES: usize = PAGES / 8;

/// Selection of the dirty log and the in-flight region that a ring uses.
#[derive(Clone, Copy, Debug)]
pub struct Records(u8);

impl Records {
    /// Creates the selection: bit 1 (value 2) enables the dirty log, bit 2 (value 4) the in-flight
    /// region. Other bits are ignored.
    pub fn chosen_by(bits: u8) -> Self {
        Self(bits)
    }

    fn has_log(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns true if the ring has an in-flight region, whose initial contents are arbitrary.
    pub fn has_inflight(self) -> bool {
        self.0 & 4 != 0
    }
}

/// Contents of the guest's memory before a ring runs.
pub struct GuestImage {
    bytes: Vec<u8>,
}

impl GuestImage {
    /// Creates a memory that begins with `start`, truncated to [`MEMORY_BYTES`]; the remainder is
    /// 0.
    pub fn new(start: &[u8]) -> Self {
        let mut bytes = vec![0_u8; MEMORY_BYTES];
        let used = start.len().min(MEMORY_BYTES);
        bytes[..used].copy_from_slice(&start[..used]);
        Self { bytes }
    }

    /// Masks the addresses of the descriptors in the first `table_bytes` bytes to 19 bits, so that
    /// about half of them are in the memory.
    pub fn bring_near(&mut self, table_bytes: usize) {
        for descriptor in self.bytes[..table_bytes].chunks_exact_mut(16) {
            descriptor[3..8].fill(0);
            descriptor[2] &= 7;
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Maps the memory as a device does, in two regions, and creates the setup of a ring.
    pub fn open(&self, size: u32, features: u64, base: u16, addresses: RingAddresses) -> OpenGuest {
        let file = memfd();
        file.write_all_at(&self.bytes, 0).unwrap();
        let half = MEMORY_BYTES as u64 / 2;
        let spec = |address: u64| RegionSpec {
            guest_addr: address,
            size: half,
            user_addr: address,
            mmap_offset: address,
            fd: file.as_fd(),
        };
        let memory = Arc::new(GuestMemory::map(&[spec(0), spec(half)]).unwrap());
        let setup = RingSetup {
            queue: 0,
            size,
            addresses,
            base,
            features: RingFeatures(features),
            kick: None,
            call: Arc::new(InterruptLine::new()),
            error: Arc::new(InterruptLine::new()),
        };
        OpenGuest { file, memory, setup, log: memfd(), logs: Cell::new(false) }
    }

    /// Checks that `after` equals this memory outside the ranges `may_change`.
    ///
    /// # Panics
    ///
    /// A byte outside the ranges differs.
    pub fn check_unchanged(&self, after: &[u8], may_change: &[Range<usize>]) {
        let (mut before, mut after) = (self.bytes.clone(), after.to_vec());
        for range in may_change {
            before[range.clone()].fill(0);
            after[range.clone()].fill(0);
        }
        if before != after {
            let changed = before.iter().zip(&after).position(|(before, after)| before != after);
            panic!("byte {changed:x?} was changed");
        }
    }
}

/// Guest memory mapped by a device, with the setup of one ring.
pub struct OpenGuest {
    file: File,
    pub memory: Arc<GuestMemory>,
    pub setup: RingSetup,
    log: File,
    logs: Cell<bool>,
}

impl OpenGuest {
    /// Returns a copy of the memory's current contents.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; MEMORY_BYTES];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// Creates the dirty log and in-flight region that `chosen` selects. The in-flight region is
    /// filled with bytes of the guest's memory.
    pub fn records(&self, chosen: Records, is_packed: bool, used_addr: u64) -> RingTracking {
        let mut records = RingTracking::default();
        if chosen.has_log() {
            self.logs.set(true);
            self.log.set_len(LOG_BYTES as u64).unwrap();
            let log = DirtyLog::map(self.log.as_fd(), 0, LOG_BYTES as u64).unwrap();
            records.log = Some(RingLog { log: Arc::new(log), used_addr: Some(used_addr) });
        }
        let queue_size = u16::try_from(self.setup.size).unwrap_or(0);
        if chosen.has_inflight() && queue_size > 0 {
            let layout = InflightLayout { queues: 1, queue_size, is_packed };
            let (region, fd) = InflightRegion::create(layout).unwrap();
            // The range is after the ring, and fuzz inputs are long enough to reach it.
            let from = 1100;
            let bytes = &self.bytes()[from..from + layout.bytes() as usize];
            let file = File::from(fd);
            file.write_all_at(bytes, 0).unwrap();
            // A ring rejects most version numbers, so only 0 and 1 are used.
            file.write_all_at(&[bytes[8] & 1, 0], 8).unwrap();
            records.inflight = region.queue(0);
        }
        records
    }

    /// Checks that each page that differs from `before` is in the dirty log, if there is one.
    ///
    /// # Panics
    ///
    /// A changed page is missing.
    pub fn check_log(&self, before: &GuestImage) {
        if !self.logs.get() {
            return;
        }
        let mut log = [0; LOG_BYTES];
        self.log.read_exact_at(&mut log, 0).unwrap();
        let after = self.bytes();
        for page in 0..PAGES {
            let range = page * 4096..(page + 1) * 4096;
            let is_logged = log[page / 8] >> (page % 8) & 1 != 0;
            assert!(
                is_logged || before.bytes[range.clone()] == after[range],
                "page {page} is missing"
            );
        }
    }
}

fn memfd() -> File {
    File::from(rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
}
