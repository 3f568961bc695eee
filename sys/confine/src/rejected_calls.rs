//! Handling of system calls that a filter rejected: a count, a record of the last one, and a
//! notification.
//!
//! Filters raise `SIGSYS` in the thread that made the call. The handler records the call and lets
//! the thread continue with `EPERM`. It only uses async-signal-safe operations: atomics, plain
//! memory of its thread, and one write to a pipe. The reader of the pipe then reads the count.
//!
//! The kernel kills the process if a thread that blocks `SIGSYS` makes a rejected call.
#![allow(unsafe_code, reason = "installs a signal handler that reads a signal frame")]

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::call_names::call_name;

/// Value of `si_code` for a signal that a filter raised: `SYS_SECCOMP` of `asm-generic/siginfo.h`.
const FROM_FILTER: c_int = 1;

/// Offset of the call number in `siginfo_t` in bytes, on 64-bit machines: after three integers with
/// padding, and the call's address.
const CALL_NUMBER_AT: usize = 24;

static COUNT: AtomicU64 = AtomicU64::new(0);
static LAST_CALL: AtomicI64 = AtomicI64::new(-1);
static LAST_THREAD: AtomicU32 = AtomicU32::new(0);
static LAST_LABEL: AtomicU32 = AtomicU32::new(0);
/// Write end of the notification pipe; -1 before [`install`].
static WAKE: AtomicI32 = AtomicI32::new(-1);

thread_local! {
    /// Index of this thread's role in [`LABELS`]; plain memory, which a handler may read.
    static LABEL: Cell<u32> = const { Cell::new(0) };
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// Number of rejected calls, and the last of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedCalls {
    /// Number of calls rejected since the process started.
    pub count: u64,
    /// Name of the last rejected call.
    pub last_call: String,
    /// Kind of the thread that made the last rejected call: `control plane`, `processor`,
    /// `front-end` or `NBD server`.
    pub thread_kind: &'static str,
    /// Thread id of this thread, as in `/proc/PID/task`; 0 for the control plane.
    pub thread_id: u32,
}

/// Kinds of threads, indexed by their label.
const LABELS: [&str; 4] = ["control plane", "processor", "front-end", "NBD server"];

/// Sets the label, an index of [`LABELS`], under which rejected calls of the calling thread are
/// recorded.
pub(crate) fn set_thread_label(label: u32) {
    LABEL.set(label);
    THREAD.set(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
}

/// Returns the number of rejected calls since the start.
pub(crate) fn count() -> u64 {
    COUNT.load(Relaxed)
}

/// Returns the number of rejected calls and the last one; `None` if no call was rejected yet.
pub(crate) fn last() -> Option<RejectedCalls> {
    let count = count();
    let label = usize::try_from(LAST_LABEL.load(Relaxed)).unwrap_or_default();
    (count > 0).then(|| RejectedCalls {
        count,
        last_call: call_name(LAST_CALL.load(Relaxed)),
        thread_kind: LABELS.get(label).copied().unwrap_or_default(),
        thread_id: LAST_THREAD.load(Relaxed),
    })
}

/// Returns the read end of a pipe to which the handler writes a byte after each rejected call;
/// `None` before the first [`Confinement`](crate::Confinement) was created. Only one of several
/// readers receives a byte.
///
/// # Errors
/// The process has no free descriptor.
pub fn wake_pipe() -> io::Result<Option<OwnedFd>> {
    let installed = INSTALLED.get().and_then(|installed| installed.as_ref().ok());
    installed.map(|pipe| pipe.read.try_clone()).transpose()
}

/// Notification pipe. Never closed, because the handler writes to it.
struct Pipe {
    read: OwnedFd,
    _write: OwnedFd,
}

static INSTALLED: OnceLock<Result<Pipe, i32>> = OnceLock::new();

/// Creates the pipe and installs the handler, unless that was done before.
///
/// # Errors
/// The process has no free descriptor, or the kernel rejects the handler.
pub(crate) fn install() -> io::Result<()> {
    let installed = INSTALLED.get_or_init(|| {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(rustix::io::Errno::raw_os_error)?;
        WAKE.store(write.as_raw_fd(), Relaxed);
        // SAFETY: sigaction is called with one initialised structure and no place for the old
        // action; the handler is async-signal-safe.
        let result = unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = handle_sigsys;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGSYS, &raw const action, core::ptr::null_mut())
        };
        if result == 0 { Ok(Pipe { read, _write: write }) } else { Err(last_errno()) }
    });
    installed.as_ref().map(drop).map_err(|errno| io::Error::from_raw_os_error(*errno))
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Handler of `SIGSYS`. Async-signal-safe: see the module.
extern "C" fn handle_sigsys(_signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo to an SA_SIGINFO handler; the number is inside of
    // it, aligned.
    let (code, number) =
        unsafe { ((*info).si_code, info.byte_add(CALL_NUMBER_AT).cast::<c_int>().read()) };
    if code != FROM_FILTER {
        return;
    }
    LAST_CALL.store(i64::from(number), Relaxed);
    LAST_LABEL.store(LABEL.get(), Relaxed);
    LAST_THREAD.store(THREAD.get(), Relaxed);
    COUNT.fetch_add(1, Relaxed);
    let byte = [1_u8];
    // SAFETY: one readable byte, and a descriptor that is never closed. Every list permits the
    // call. The interrupted code's errno is restored; its result is set below.
    unsafe {
        let errno = errno_pointer();
        let before = *errno;
        libc::write(WAKE.load(Relaxed), byte.as_ptr().cast(), byte.len());
        *errno = before;
    }
    // SAFETY: the third argument of an SA_SIGINFO handler is the context with which the thread
    // continues.
    unsafe { set_result(&mut *context.cast::<libc::ucontext_t>(), -i64::from(libc::EPERM)) }
}

fn errno_pointer() -> *mut c_int {
    // SAFETY: has no precondition; the location belongs to the calling thread.
    unsafe { libc::__errno_location() }
}

/// Sets the result of the interrupted call.
#[cfg(target_arch = "x86_64")]
fn set_result(context: &mut libc::ucontext_t, result: i64) {
    if let Some(rax) = context.uc_mcontext.gregs.get_mut(libc::REG_RAX as usize) {
        *rax = result;
    }
}

/// Sets the result of the interrupted call.
#[cfg(target_arch = "aarch64")]
fn set_result(context: &mut libc::ucontext_t, result: i64) {
    if let Some(x0) = context.uc_mcontext.regs.first_mut() {
        *x0 = result as u64;
    }
}
