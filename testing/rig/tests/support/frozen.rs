//! A thread of another process that does not proceed.
#![allow(unsafe_code, reason = "stops a thread of another process with ptrace")]

use std::ptr::null_mut;
use std::time::{Duration, Instant};

use libc::{c_int, c_long, c_void, pid_t, user_regs_struct};

/// Time limit for a thread to make one of the system calls.
const LIMIT: Duration = Duration::from_secs(60);
/// Pause between two checks of the thread's system call.
const PAUSE: Duration = Duration::from_micros(700);

/// Stopped thread of another process. Dropping this resumes it. Methods and drop must run on the
/// thread that stopped it.
pub struct Frozen {
    thread: pid_t,
    has_ended: bool,
}

impl Frozen {
    /// Stops a thread directly after one of these system calls.
    ///
    /// # Panics
    /// The thread cannot be traced, or makes none of the calls within a minute.
    pub fn after_call(thread: u32, calls: &[c_long]) -> Self {
        let thread = pid_t::try_from(thread).unwrap();
        let until = Instant::now() + LIMIT;
        loop {
            let frozen = Self::stop(thread);
            let registers = registers(thread);
            // A thread that was stopped in user space has no system call number.
            if calls.contains(&(registers.orig_rax as c_long)) {
                return frozen;
            }
            drop(frozen);
            assert!(Instant::now() < until, "the thread makes none of the calls");
            std::thread::sleep(PAUSE);
        }
    }

    fn stop(thread: pid_t) -> Self {
        // SAFETY: attaching touches no memory of this process.
        let attached =
            unsafe { libc::ptrace(libc::PTRACE_ATTACH, thread, null_mut::<c_void>(), 0) };
        assert_eq!(attached, 0, "{}", std::io::Error::last_os_error());
        let status = wait(thread);
        assert!(libc::WIFSTOPPED(status), "the thread has ended: {status:#x}");
        Self { thread, has_ended: false }
    }

    /// Waits until the process of the thread ends.
    pub fn wait_end(mut self) {
        let status = wait(self.thread);
        assert!(!libc::WIFSTOPPED(status), "{status:#x}");
        self.has_ended = true;
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        if !self.has_ended {
            // SAFETY: touches no memory of this process.
            unsafe { libc::ptrace(libc::PTRACE_DETACH, self.thread, null_mut::<c_void>(), 0) };
        }
    }
}

fn wait(thread: pid_t) -> c_int {
    let mut status = 0;
    // SAFETY: `status` is writable.
    let wait_result = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
    assert_eq!(wait_result, thread, "{}", std::io::Error::last_os_error());
    status
}

fn registers(thread: pid_t) -> user_regs_struct {
    // SAFETY: all zero is a valid set of registers, and there is room for one.
    unsafe {
        let mut registers: user_regs_struct = std::mem::zeroed();
        let read =
            libc::ptrace(libc::PTRACE_GETREGS, thread, null_mut::<c_void>(), &raw mut registers);
        assert_eq!(read, 0, "{}", std::io::Error::last_os_error());
        registers
    }
}
