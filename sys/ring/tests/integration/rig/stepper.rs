//! Executes an operation in a forked process, and stops it after each store to shared memory.
//!
//! The memory between two stores is the state that a `kill -9` at that point leaves. The shared
//! pages are write-protected in the child. A store faults, a handler removes the protection, the
//! instruction is executed as a single step, and the pages are protected again. All other
//! instructions run at full speed, which makes thousands of crash points feasible.
#![allow(unsafe_code, reason = "fork, ptrace and signal handlers")]

use std::cell::Cell;
use std::fs::{File, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// Maximum number of stores of an operation; more than any operation under test makes.
const STORES_MAX: usize = 10_000;
/// Limit of the CPU time of an operation in seconds, so that an operation that hangs ends the test.
const SECONDS_MAX: libc::rlim_t = 10;
const PAGE_BYTES: usize = 4096;
/// Signal of the child, which means that the protection is removed and the faulting store may be
/// executed.
const UNPROTECTED: libc::c_int = libc::SIGUSR1;
/// Signal to the child, which makes it protect the pages again.
const PROTECT: libc::c_int = libc::SIGUSR2;

/// File of which stores to the first `bytes` bytes, up to a page boundary, are detected, in all
/// mappings at offset 0.
pub struct Watched<'a> {
    pub file: &'a File,
    pub bytes: usize,
}

/// Executes `operation` in a fork of this process, and calls `observe` after each of its
/// instructions that stores to a file of `watched`. Returns the number of such instructions.
///
/// Only shared memory transfers results. The fork has a single thread, so that the operation must
/// not wait for another one. Mappings that the operation creates are not watched.
pub fn step_through(
    watched: &[Watched<'_>],
    operation: impl FnOnce(),
    mut observe: impl FnMut(),
) -> usize {
    let pages = watched.iter().flat_map(pages_of).collect();
    // SAFETY: the child runs Rust code that allocates; glibc leaves its locks
    // usable after a fork, and no other lock is taken.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork: {}", std::io::Error::last_os_error());
    if child == 0 {
        run_traced(pages, operation);
    }
    let child = Child { pid: child, has_ended: Cell::new(false) };
    assert_eq!(child.wait(), libc::SIGSTOP, "the child did not stop at its start");
    let mut signal = PROTECT;
    for stores in 0..STORES_MAX {
        // A store to a protected page faults.
        match child.resume(libc::PTRACE_CONT, signal) {
            libc::SIGSEGV => {}
            libc::SIGSTOP => return stores,
            other => panic!("the operation failed after {stores} stores: signal {other}"),
        }
        // The handler removes the protection.
        assert_eq!(
            child.resume(libc::PTRACE_CONT, libc::SIGSEGV),
            UNPROTECTED,
            "an access outside the watched pages"
        );
        // The store is executed.
        assert_eq!(child.resume(libc::PTRACE_SINGLESTEP, 0), libc::SIGTRAP);
        observe();
        signal = PROTECT;
    }
    panic!("the operation does not end");
}

/// Returns start and length of the watched pages, for each mapping of the file.
fn pages_of(watched: &Watched<'_>) -> Vec<(usize, usize)> {
    let inode = watched.file.metadata().unwrap().ino().to_string();
    let mut pages = Vec::new();
    for line in read_to_string("/proc/self/maps").unwrap().lines() {
        // Addresses, access, offset, device, inode (proc_pid_maps(5)).
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_start = usize::from_str_radix(fields[2], 16) == Ok(0);
        if fields[4] == inode && line.contains("memfd:") && is_start {
            let start = fields[0].split('-').next().unwrap();
            let start = usize::from_str_radix(start, 16).unwrap();
            pages.push((start, watched.bytes.next_multiple_of(PAGE_BYTES)));
        }
    }
    assert!(!pages.is_empty(), "the file is not mapped");
    pages
}

/// Watched pages, as start and length; set in the child.
static PAGES: OnceLock<Vec<(usize, usize)>> = OnceLock::new();

fn set_protection(access: libc::c_int) {
    for (start, bytes) in PAGES.get().into_iter().flatten() {
        // SAFETY: the pages are mapped; faults are answered by `lift`.
        unsafe { libc::mprotect(*start as *mut libc::c_void, *bytes, access) };
    }
}

/// Handles a fault: removes the protection and stops the child; the store is executed after the
/// stop.
extern "C" fn lift(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes the fault's description. The signal that is raised
    // is blocked until this handler is left, so it stops the child at the store.
    unsafe {
        let fault_address = (*info).si_addr() as usize;
        let pages = PAGES.get().into_iter().flatten();
        if !pages.into_iter().any(|(start, bytes)| (*start..start + bytes).contains(&fault_address))
        {
            libc::_exit(102);
        }
        set_protection(libc::PROT_READ | libc::PROT_WRITE);
        libc::raise(UNPROTECTED);
    }
}

extern "C" fn protect(_: libc::c_int) {
    set_protection(libc::PROT_READ);
}

/// Runs the operation in the traced child, which stops itself (`SIGSTOP`) before and after it.
fn run_traced(pages: Vec<(usize, usize)>, operation: impl FnOnce()) -> ! {
    let was_set = PAGES.set(pages).is_ok();
    // SAFETY: plain system calls and handlers that make nothing else; the child
    // never returns to the test.
    unsafe {
        if !was_set {
            libc::_exit(103);
        }
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = protect as *const () as libc::sighandler_t;
        libc::sigaction(PROTECT, &raw const action, core::ptr::null_mut());
        action.sa_sigaction = lift as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaddset(&raw mut action.sa_mask, UNPROTECTED);
        libc::sigaction(libc::SIGSEGV, &raw const action, core::ptr::null_mut());
        let limit = libc::rlimit { rlim_cur: SECONDS_MAX, rlim_max: SECONDS_MAX };
        libc::setrlimit(libc::RLIMIT_CPU, &raw const limit);
        libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
        libc::raise(libc::SIGSTOP);
        let failed = catch_unwind(AssertUnwindSafe(operation)).is_err();
        if !failed {
            libc::raise(libc::SIGSTOP);
        }
        libc::_exit(101)
    }
}

/// Child process traced by this thread.
struct Child {
    pid: libc::pid_t,
    has_ended: Cell<bool>,
}

impl Child {
    /// Continues the child with `signal` until it stops. Returns the signal that stopped it; 0 if
    /// it ended.
    fn resume(&self, request: libc::c_uint, signal: libc::c_int) -> libc::c_int {
        // SAFETY: the child is stopped and traced by this thread.
        let resumed = unsafe { libc::ptrace(request, self.pid, 0, signal) };
        assert_eq!(resumed, 0, "resume: {}", std::io::Error::last_os_error());
        self.wait()
    }

    /// Waits until the child stops or ends. Returns the signal that stopped it; 0 if it ended.
    fn wait(&self) -> libc::c_int {
        let mut status = 0;
        // SAFETY: `status` is valid.
        let waited = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        assert_eq!(waited, self.pid, "wait: {}", std::io::Error::last_os_error());
        self.has_ended.set(!libc::WIFSTOPPED(status));
        if libc::WIFSTOPPED(status) { libc::WSTOPSIG(status) } else { 0 }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.has_ended.get() {
            // SAFETY: our own child, whose end was not waited for yet.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, core::ptr::null_mut(), 0);
            }
        }
    }
}
