//! Disks in memory for copies, with hooks that run during the copy.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use suimon_image::ByteRange;
use suimon_ports::{Allocation, AllocationExtent, DiskClient, DiskClientError};

/// Bytes that are allocated together.
pub(crate) const BLOCK: u64 = 4096;

/// Function that is called with the range of a request.
pub(crate) type Hook = Box<dyn FnMut(ByteRange) + Send>;

/// Disk in memory as source or target of a copy.
#[derive(Default)]
pub(crate) struct FakeDisk {
    /// Content of the disk, and for each block of [`BLOCK`] bytes whether it is allocated.
    content: Mutex<(Vec<u8>, Vec<bool>)>,
    /// Hooks: `on_read` is called after a read has taken its bytes, `on_write` before a write
    /// stores its bytes.
    pub(crate) on_read: Mutex<Option<Hook>>,
    pub(crate) on_write: Mutex<Option<Hook>>,
    /// True if every request fails.
    pub(crate) fails: AtomicBool,
    /// First flag: requests hang. Second flag: the connection has ended.
    hangs: Mutex<(bool, bool)>,
    changed: Condvar,
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) zeroes: AtomicU64,
    pub(crate) flushes: AtomicU64,
}

impl FakeDisk {
    pub(crate) fn new(size: u64) -> Arc<Self> {
        let blocks = size.div_ceil(BLOCK) as usize;
        let content = Mutex::new((vec![0; size as usize], vec![false; blocks]));
        Arc::new(Self { content, ..Self::default() })
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.content.lock().unwrap().0.clone()
    }

    /// Writes `byte` to a range, as a client of the disk does.
    pub(crate) fn put(&self, range: ByteRange, byte: u8) {
        let mut content = self.content.lock().unwrap();
        let (start, until) = (range.offset() as usize, range.end() as usize);
        content.0[start..until].fill(byte);
        let has_data = byte != 0;
        for block in range.offset() / BLOCK..range.end().div_ceil(BLOCK) {
            let is_complete = block * BLOCK >= range.offset() && (block + 1) * BLOCK <= range.end();
            if has_data || is_complete {
                content.1[block as usize] = has_data;
            }
        }
    }

    /// Makes all further requests hang.
    pub(crate) fn hang(&self) {
        self.hangs.lock().unwrap().0 = true;
    }

    fn pass(&self) -> Result<(), DiskClientError> {
        let disconnected = || Err(DiskClientError::Disconnected("ended".to_owned()));
        let mut hangs = self.hangs.lock().unwrap_or_else(PoisonError::into_inner);
        while hangs.0 && !hangs.1 {
            hangs = self.changed.wait(hangs).unwrap_or_else(PoisonError::into_inner);
        }
        if hangs.1 {
            return disconnected();
        }
        match self.fails.load(Ordering::Relaxed) {
            true => Err(DiskClientError::RequestFailed("broken".to_owned())),
            false => Ok(()),
        }
    }
}

/// Connection to a [`FakeDisk`].
pub(crate) struct FakeClient(pub(crate) Arc<FakeDisk>);

impl DiskClient for FakeClient {
    fn size_bytes(&self) -> u64 {
        self.0.content.lock().unwrap().0.len() as u64
    }

    fn sector_bytes(&self) -> u32 {
        512
    }

    fn read(&self, range: ByteRange, bytes: &mut Vec<u8>) -> Result<(), DiskClientError> {
        self.0.pass()?;
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        let (start, until) = (range.offset() as usize, range.end() as usize);
        *bytes = self.0.content.lock().unwrap().0[start..until].to_vec();
        if let Some(hook) = &mut *self.0.on_read.lock().unwrap() {
            hook(range);
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskClientError> {
        self.0.pass()?;
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        let range = ByteRange::new(offset, bytes.len() as u64).unwrap();
        // The lock is released before the hook is called, so that other requests continue.
        let hook = self.0.on_write.lock().unwrap().take();
        if let Some(mut hook) = hook {
            hook(range);
        }
        let start = offset as usize;
        self.0.content.lock().unwrap().0[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn write_zeroes(&self, range: ByteRange) -> Result<(), DiskClientError> {
        self.0.pass()?;
        self.0.zeroes.fetch_add(1, Ordering::Relaxed);
        let (start, until) = (range.offset() as usize, range.end() as usize);
        self.0.content.lock().unwrap().0[start..until].fill(0);
        Ok(())
    }

    fn allocation(&self, range: ByteRange) -> Result<Vec<AllocationExtent>, DiskClientError> {
        self.0.pass()?;
        let content = self.0.content.lock().unwrap();
        let mut extents: Vec<AllocationExtent> = Vec::new();
        for (block, piece) in range.blocks(BLOCK) {
            let has_data = content.1[block as usize];
            let allocation = if has_data { Allocation::Data } else { Allocation::Hole };
            let count = extents.len();
            match extents.last_mut() {
                Some(last) if last.allocation == allocation => last.len += piece.len(),
                // A query returns a limited number of extents.
                _ if count == 3 => break,
                _ => extents.push(AllocationExtent { allocation, len: piece.len() }),
            }
        }
        Ok(extents)
    }

    fn flush(&self) -> Result<(), DiskClientError> {
        self.0.pass()?;
        self.0.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn disconnect(&self) {
        self.0.hangs.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.0.changed.notify_all();
    }
}
