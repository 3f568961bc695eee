//! Handling of file mappings whose file was truncated.
//!
//! Access to a page beyond the end of a shared file mapping raises `SIGBUS`, which kills the
//! process. One hostile or crashed front-end, or a program that truncates the file of one disk in
//! memory, would stop all VMs of the host. The handler recognises addresses inside guarded
//! mappings, maps a private page of zeros there and lets the access continue. The truncation is
//! counted and recorded in the mapping's guard, which the owner checks. Any other `SIGBUS` is
//! passed to the previous handler.
//!
//! State: a fixed table of mappings, which the handler reads without a lock. A slot is free while
//! its `start` is 0. The owner fills `end` and `page_bytes` before it publishes `start`, and clears
//! `start` before it unmaps; the mapping is not accessed in between, so the handler cannot see a
//! partly filled slot.
#![allow(unsafe_code, reason = "installs a signal handler that maps pages")]

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::io;
use std::sync::OnceLock;

/// Maximum number of guarded mappings over all VMs and disks.
pub const GUARDS_MAX: usize = 16_384;

#[derive(Debug)]
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    page_bytes: AtomicUsize,
    claimed: AtomicBool,
    is_truncated: AtomicBool,
}

static TABLE: [Slot; GUARDS_MAX] = [const {
    Slot {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        page_bytes: AtomicUsize::new(0),
        claimed: AtomicBool::new(false),
        is_truncated: AtomicBool::new(false),
    }
}; GUARDS_MAX];

static TRUNCATIONS: AtomicU64 = AtomicU64::new(0);
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Returns the number of accesses beyond the end of a guarded mapping's file since the process
/// started. Stays 0 unless another process truncates the memory file of a running VM or the file of
/// a disk in memory.
pub fn truncated_access_count() -> u64 {
    TRUNCATIONS.load(Ordering::Acquire)
}

/// Installs the handler immediately, for programs in which the threads that create mappings may not
/// install handlers.
///
/// # Errors
/// The host rejects the handler.
pub fn install_truncation_handler() -> io::Result<()> {
    install()
}

/// Registration of a mapping in the handler's table; dropping it frees the table's slot.
#[derive(Debug)]
pub struct TruncationGuard {
    slot: &'static Slot,
}

impl TruncationGuard {
    /// Guards the mapping of `bytes` bytes at address `start`, which consists of pages of
    /// `page_bytes` bytes (a power of two).
    ///
    /// # Errors
    /// The table is full, or the handler could not be installed.
    pub fn new(start: usize, bytes: usize, page_bytes: usize) -> io::Result<Self> {
        install()?;
        let slot =
            TABLE.iter().find(|slot| !slot.claimed.swap(true, Ordering::AcqRel)).ok_or_else(
                || io::Error::other("the limit of memory mapped for VMs and disks is reached"),
            )?;
        slot.end.store(start + bytes, Ordering::Relaxed);
        slot.page_bytes.store(page_bytes, Ordering::Relaxed);
        slot.is_truncated.store(false, Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        Ok(Self { slot })
    }

    /// Returns true if the mapping was accessed beyond the end of its file.
    #[must_use]
    #[inline]
    pub fn is_truncated(&self) -> bool {
        self.slot.is_truncated.load(Ordering::Acquire)
    }
}

impl Drop for TruncationGuard {
    fn drop(&mut self) {
        self.slot.start.store(0, Ordering::Release);
        self.slot.claimed.store(false, Ordering::Release);
    }
}

fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Option<i32>> = OnceLock::new();
    let failed = INSTALLED.get_or_init(|| {
        // SAFETY: sigaction is called with one valid, zeroed structure for the old action and one
        // initialised structure for the new one; the handler is async-signal-safe.
        unsafe {
            let mut before: libc::sigaction = core::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, core::ptr::null(), &raw mut before) != 0 {
                return io::Error::last_os_error().raw_os_error();
            }
            let _ = BEFORE.set(before);
            let mut action: libc::sigaction = core::mem::zeroed();
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = handle_sigbus;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            if libc::sigaction(libc::SIGBUS, &raw const action, core::ptr::null_mut()) != 0 {
                return io::Error::last_os_error().raw_os_error();
            }
        }
        None
    });
    failed.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
}

/// Handler of `SIGBUS`. Async-signal-safe: uses atomics and system calls only.
extern "C" fn handle_sigbus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler.
    let address = unsafe { (*info).si_addr() } as usize;
    if !replace_page(address) {
        pass_on(signal, info, context);
    }
}

/// Maps zeros from the page of `address` to the end of the guarded mapping that contains it.
/// Returns false if no guarded mapping does, or the zeros cannot be mapped.
///
/// A file that lacks a page lacks all later ones. One mapping for each page that is accessed would
/// exceed the permitted number of mappings (`vm.max_map_count`), and the process would be killed.
/// If the file is extended again, later pages remain zeros; the owner has stopped the device by
/// then.
fn replace_page(address: usize) -> bool {
    for slot in &TABLE {
        let start = slot.start.load(Ordering::Acquire);
        if start == 0 || address < start || address >= slot.end.load(Ordering::Relaxed) {
            continue;
        }
        let page_bytes = slot.page_bytes.load(Ordering::Relaxed);
        let page = address & !(page_bytes - 1);
        // Set before the zeros are mapped, so that a reader of zeros finds it set.
        slot.is_truncated.store(true, Ordering::Release);
        TRUNCATIONS.fetch_add(1, Ordering::Release);
        let bytes = slot.end.load(Ordering::Relaxed).saturating_sub(page);
        // SAFETY: the pages belong to a mapping that its owner holds while the slot is filled; only
        // raw copies access it, and no references into it exist.
        let mapped = unsafe {
            libc::mmap(
                page as *mut c_void,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        return mapped != libc::MAP_FAILED;
    }
    false
}

/// Calls the previous handler of `SIGBUS`, or restores the default action if there is none.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get();
    let handler = before.map_or(libc::SIG_DFL, |action| action.sa_sigaction);
    let wants_info = before.is_some_and(|action| action.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: the previous handler is called with the signature with which it was registered. If
    // the default action is restored, the access is repeated after the return and kills the
    // process.
    unsafe {
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            libc::signal(signal, libc::SIG_DFL);
        } else if wants_info {
            let call: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                core::mem::transmute(handler);
            call(signal, info, context);
        } else {
            let call: extern "C" fn(c_int) = core::mem::transmute(handler);
            call(signal);
        }
    }
}

#[cfg(test)]
#[path = "huge_pages_tests.rs"]
mod huge_pages_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_beyond_the_table_are_rejected_until_one_is_dropped() {
        const PAGE: usize = 4096;
        // Nothing accesses this range.
        let guard = || TruncationGuard::new(PAGE, PAGE, PAGE);
        let mut guards = Vec::new();
        let error = loop {
            match guard() {
                Ok(guard) => guards.push(guard),
                Err(error) => break error,
            }
            assert!(guards.len() <= GUARDS_MAX);
        };
        assert!(guards.len() > GUARDS_MAX / 2, "{error}");
        drop(guards.pop());
        guard().unwrap();
    }
}
