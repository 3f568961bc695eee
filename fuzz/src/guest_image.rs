//! A VM's memory made from any bytes, with one ring in it, for the oracles of both
//! forms of ring.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use suimon_ring::{
    DirtyLog, GuestMemory, Inflight, InflightLayout, InterruptLine, RegionSpec, RingAddresses,
    RingFeatures, RingLog, RingSetup, RingTracking,
};

/// Length of the memory.
pub const MEMORY_BYTES: usize = 0x4_0000;
/// Pages of it, and bytes of the log that has a bit for each.
const PAGES: usize = MEMORY_BYTES / 4096;
const LOG_BYTES: usize = PAGES / 8;

/// What a ring is to write down.
#[derive(Clone, Copy, Debug)]
pub struct Records(u8);

impl Records {
    /// The choice in these bits: that of value 2 stands for the log, that of value 4
    /// for the in-flight region. The others are not looked at.
    pub fn chosen_by(bits: u8) -> Self {
        Self(bits)
    }

    fn has_log(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether there is an in-flight region, which then holds any bytes.
    pub fn has_inflight(self) -> bool {
        self.0 & 4 != 0
    }
}

/// The memory as it is before a ring runs.
pub struct GuestImage {
    bytes: Vec<u8>,
}

impl GuestImage {
    /// Memory that starts with these bytes; the rest is 0.
    pub fn new(start: &[u8]) -> Self {
        let mut bytes = vec![0_u8; MEMORY_BYTES];
        let used = start.len().min(MEMORY_BYTES);
        bytes[..used].copy_from_slice(&start[..used]);
        Self { bytes }
    }

    /// Cuts the addresses in the first descriptors so that most lie in memory.
    pub fn bring_near(&mut self, table_bytes: usize) {
        for descriptor in self.bytes[..table_bytes].chunks_exact_mut(16) {
            descriptor[3..8].fill(0);
            descriptor[2] &= 7;
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The memory as a device maps it, in two regions, and the setup of a ring.
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

    /// Panics unless `after` differs from this at most in these places.
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

/// Memory that a device has mapped.
pub struct OpenGuest {
    file: File,
    pub memory: Arc<GuestMemory>,
    pub setup: RingSetup,
    log: File,
    logs: Cell<bool>,
}

impl OpenGuest {
    /// The memory as it stands.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; MEMORY_BYTES];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// What the ring is to write down. An in-flight region holds the end of the
    /// VM's memory.
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
            let (region, fd) = Inflight::create(layout).unwrap();
            // Behind the ring, where the input still reaches.
            let from = 1100;
            let bytes = &self.bytes()[from..from + layout.bytes() as usize];
            let file = File::from(fd);
            file.write_all_at(bytes, 0).unwrap();
            // Of most versions nothing more would be seen.
            file.write_all_at(&[bytes[8] & 1, 0], 8).unwrap();
            records.inflight = region.queue(0);
        }
        records
    }

    /// Panics unless every page that differs from `before` is in the log.
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
