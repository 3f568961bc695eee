//! Asynchronous I/O contexts of the kernel (io_setup(2)), by which eventfds are signalled without
//! blocking.
//!
//! The operation is a read of zero bytes from an eventfd of this process. It fails at once, and its
//! completion signals the peer's eventfd. The kernel checks that the descriptor to signal is an
//! eventfd before it examines the operation.
#![allow(unsafe_code, reason = "system calls of io_submit(2), which rustix does not provide")]

use core::cell::Cell;
use core::ffi::{c_long, c_ulong};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::pipe::{PipeFlags, pipe_with};

/// Capacity of a context's completion queue, in completions.
const EVENTS: usize = 64;
/// Number of completions after which a context's completion queue is emptied.
const EMPTY_AFTER: usize = 32;
/// Number of contexts in addition to one per CPU, for threads of the control plane.
const SPARE: usize = 4;
/// Maximum number of contexts. If there are more threads, some share a context.
const CONTEXTS_MAX: usize = 128;
/// Number of attempts to signal an eventfd. If all fail, the kernel has no free memory and the
/// signal is lost.
const ATTEMPTS: usize = 4;

/// `IOCB_CMD_PREAD` of `linux/aio_abi.h`.
const COMMAND_PREAD: u16 = 0;
/// `IOCB_FLAG_RESFD` of `linux/aio_abi.h`.
const FLAG_RESFD: u32 = 1;

/// `struct iocb` of `linux/aio_abi.h`.
#[derive(Default)]
#[repr(C)]
struct ControlBlock {
    data: u64,
    key_and_flags: u64,
    command: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    signalled: u32,
}

/// `struct io_event` of `linux/aio_abi.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Completion {
    _words: [u64; 4],
}

/// Asynchronous I/O context of the kernel (`aio_context_t`).
struct Context {
    id: c_ulong,
    /// Number of operations completed since the completion queue was emptied.
    completions: usize,
}

/// Contexts of this process, and the descriptors that their operations use.
pub(crate) struct AioContexts {
    contexts: Box<[Mutex<Context>]>,
    /// Eventfd of this process, from which operations read zero bytes, so that they fail at once.
    idle: OwnedFd,
    /// Write end of a pipe, from which reads are invalid. [`AioContexts::is_eventfd`] uses it.
    write_only: OwnedFd,
}

/// Allocates the contexts, unless they exist. Must be called by a thread that may create them:
/// confined threads may only use them.
///
/// # Errors
/// The kernel lacks asynchronous I/O or `RWF_NOWAIT` for eventfds (Linux 5.8), or contexts,
/// descriptors or memory are exhausted (`fs.aio-max-nr`).
pub fn prepare() -> io::Result<()> {
    contexts().map(drop)
}

/// Returns true if the descriptor is an eventfd. Does not block, and does not change the counter.
///
/// # Errors
/// As [`prepare`], or the kernel has no memory left for the check.
pub fn is_eventfd(fd: BorrowedFd<'_>) -> io::Result<bool> {
    contexts()?.is_eventfd(fd)
}

/// Returns the contexts. Allocates them first if they do not exist.
pub(crate) fn contexts() -> io::Result<&'static AioContexts> {
    static CONTEXTS: OnceLock<AioContexts> = OnceLock::new();
    static CREATION: Mutex<()> = Mutex::new(());
    if let Some(contexts) = CONTEXTS.get() {
        return Ok(contexts);
    }
    let _guard = CREATION.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(contexts) = CONTEXTS.get() {
        return Ok(contexts);
    }
    let created = AioContexts::new()?;
    Ok(CONTEXTS.get_or_init(|| created))
}

impl AioContexts {
    fn new() -> io::Result<Self> {
        let idle = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let buffer = &mut [0; 8];
        let cleared =
            preadv2(&idle, &mut [io::IoSliceMut::new(buffer)], u64::MAX, ReadWriteFlags::NOWAIT);
        if cleared != Err(Errno::AGAIN) {
            let text = "the kernel cannot read eventfds without blocking; use Linux 5.8 or later";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let (_, write_only) = pipe_with(PipeFlags::CLOEXEC)?;
        let cpus = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        let count = cpus.saturating_add(SPARE).min(CONTEXTS_MAX);
        let mut contexts = Vec::with_capacity(count);
        for _ in 0..count {
            match Context::new() {
                Ok(context) => contexts.push(Mutex::new(context)),
                // One context suffices; others only avoid that threads wait for each other.
                Err(_) if !contexts.is_empty() => break,
                Err(error) => {
                    let text = format!(
                        "the kernel has no free asynchronous I/O context ({error}); raise \
                         fs.aio-max-nr"
                    );
                    return Err(io::Error::new(error.kind(), text));
                }
            }
        }
        Ok(Self { contexts: contexts.into(), idle, write_only })
    }

    /// Increments the counter of an eventfd by 1. Never blocks on the eventfd; a full counter
    /// remains full.
    pub(crate) fn signal(&self, fd: BorrowedFd<'_>) {
        let Some(mut context) = self.free_context() else { return };
        for _ in 0..ATTEMPTS {
            match context.submit(&self.idle, fd) {
                Ok(()) => {
                    context.completions += 1;
                    if context.completions >= EMPTY_AFTER {
                        context.empty();
                    }
                    return;
                }
                // No room for the completion, or no memory for the operation.
                Err(_) => context.empty(),
            }
        }
    }

    /// Returns true if the descriptor is an eventfd. Does not change its counter.
    ///
    /// # Errors
    /// The kernel has no free memory for the check.
    pub(crate) fn is_eventfd(&self, fd: BorrowedFd<'_>) -> io::Result<bool> {
        let Some(mut context) = self.free_context() else { return Ok(false) };
        for _ in 0..ATTEMPTS {
            match context.submit(&self.write_only, fd) {
                // The descriptor is not an eventfd.
                Err(Errno::INVAL) => return Ok(false),
                // The read is invalid, which the kernel checks after the eventfd.
                Err(Errno::BADF) => return Ok(true),
                Err(Errno::AGAIN) => context.empty(),
                Err(errno) => return Err(errno.into()),
                Ok(()) => return Ok(false),
            }
        }
        Err(io::ErrorKind::OutOfMemory.into())
    }

    /// Returns a context that no other thread uses now, preferably the one that this thread used
    /// before.
    fn free_context(&self) -> Option<MutexGuard<'_, Context>> {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static OWN: Cell<Option<usize>> = const { Cell::new(None) };
        }
        let count = self.contexts.len().max(1);
        let index = OWN.get().unwrap_or_else(|| THREADS.fetch_add(1, Ordering::Relaxed)) % count;
        OWN.set(Some(index));
        let (before, after) = self.contexts.split_at_checked(index)?;
        let free = after.iter().chain(before).find_map(|context| context.try_lock().ok());
        // If all are in use, another thread's system call is waited for, which never blocks.
        free.or_else(|| Some(after.first()?.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Context {
    fn new() -> io::Result<Self> {
        let mut id: c_ulong = 0;
        // SAFETY: `id` is 0 and writable, as io_setup(2) requires.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, EVENTS as c_long, &raw mut id) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { id, completions: 0 }) }
    }

    /// Submits a read of zero bytes from `source`, whose completion signals the eventfd
    /// `signalled`.
    fn submit(&mut self, source: &OwnedFd, signalled: BorrowedFd<'_>) -> Result<(), Errno> {
        let number = |fd: RawFd| u32::try_from(fd).unwrap_or(u32::MAX);
        let mut block = ControlBlock {
            command: COMMAND_PREAD,
            fd: number(source.as_raw_fd()),
            flags: FLAG_RESFD,
            signalled: number(signalled.as_raw_fd()),
            ..ControlBlock::default()
        };
        let mut blocks = [&raw mut block];
        // SAFETY: the array has one pointer to an initialised block. The operation is complete when
        // the call returns, and it accesses no other memory.
        let submitted = unsafe {
            libc::syscall(libc::SYS_io_submit, self.id, 1 as c_long, blocks.as_mut_ptr())
        };
        match submitted {
            1 => Ok(()),
            _ => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::AGAIN)),
        }
    }

    /// Discards all completions in the queue.
    fn empty(&mut self) {
        let mut completions = [Completion { _words: [0; 4] }; EVENTS];
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the array has room for `EVENTS` completions; the time is initialised. The minimum
        // of 0 makes the call return at once.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.id,
                0 as c_long,
                EVENTS as c_long,
                completions.as_mut_ptr(),
                &raw const now,
            );
        }
        self.completions = 0;
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was created by `new` and has no operation in flight.
        unsafe {
            libc::syscall(libc::SYS_io_destroy, self.id);
        }
    }
}
