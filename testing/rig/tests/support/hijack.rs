//! Control of a thread of another process by ptrace, which simulates a compromised thread.
#![allow(unsafe_code, reason = "drives a thread of another process with ptrace")]

use std::ptr::null_mut;

use libc::{c_int, c_long, c_void, pid_t, user_regs_struct};

/// Thread that was stopped while it waits in a system call. Dropping this resumes the thread as if
/// the call had been interrupted.
pub struct TracedThread {
    thread: pid_t,
    before: user_regs_struct,
}

impl TracedThread {
    /// Attaches to a thread and stops it.
    ///
    /// # Panics
    ///
    /// The thread cannot be traced, or does not wait in a system call.
    pub fn take(thread: u32) -> Self {
        let thread = pid_t::try_from(thread).unwrap();
        // SAFETY: attaching touches no memory of ours.
        let attached =
            unsafe { libc::ptrace(libc::PTRACE_ATTACH, thread, null_mut::<c_void>(), 0) };
        assert_eq!(attached, 0, "{}", std::io::Error::last_os_error());
        assert_eq!(stop_signal(thread), libc::SIGSTOP);
        let hijacked = Self { thread, before: registers(thread) };
        // The instruction pointer of a thread in a system call is after the instruction that made
        // the call. SAFETY: reads one word of the other thread's memory.
        let code = unsafe {
            libc::ptrace(libc::PTRACE_PEEKTEXT, thread, (hijacked.before.rip - 2) as *mut c_void, 0)
        };
        assert_eq!(code & 0xffff, 0x050f, "the thread does not wait in a system call");
        hijacked
    }

    /// Returns the thread's stack pointer, which is a valid address of its memory.
    pub fn stack(&self) -> u64 {
        self.before.rsp
    }

    /// Makes the thread execute a system call, and returns the call's result.
    pub fn call(&self, number: c_long, arguments: [u64; 4]) -> i64 {
        let mut registers = self.before;
        registers.rip -= 2;
        registers.rax = number as u64;
        // Prevents the kernel from restarting the interrupted call.
        registers.orig_rax = u64::MAX;
        [registers.rdi, registers.rsi, registers.rdx, registers.r10] = arguments;
        set_registers(self.thread, &registers);
        // Steps until the instruction pointer is after the call again. This includes the signal
        // handler of a rejected call.
        let mut signal = 0;
        loop {
            step(self.thread, signal);
            signal = match stop_signal(self.thread) {
                libc::SIGTRAP => 0,
                other => other,
            };
            let now = self::registers(self.thread);
            let is_executed = now.rax != number as u64;
            if signal == 0 && now.rip == self.before.rip && is_executed {
                return now.rax as i64;
            }
        }
    }
}

impl Drop for TracedThread {
    fn drop(&mut self) {
        let mut registers = self.before;
        registers.rax = -i64::from(libc::EINTR) as u64;
        registers.orig_rax = u64::MAX;
        set_registers(self.thread, &registers);
        // SAFETY: touches no memory of ours.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.thread, null_mut::<c_void>(), 0) };
    }
}

fn step(thread: pid_t, signal: c_int) {
    // SAFETY: touches no memory of ours.
    let stepped = unsafe {
        libc::ptrace(libc::PTRACE_SINGLESTEP, thread, null_mut::<c_void>(), c_long::from(signal))
    };
    assert_eq!(stepped, 0, "{}", std::io::Error::last_os_error());
}

fn stop_signal(thread: pid_t) -> c_int {
    let mut status = 0;
    // SAFETY: `status` is writable.
    let wait_result = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
    assert_eq!(wait_result, thread, "{}", std::io::Error::last_os_error());
    assert!(libc::WIFSTOPPED(status), "the thread has ended: {status:#x}");
    libc::WSTOPSIG(status)
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

fn set_registers(thread: pid_t, registers: &user_regs_struct) {
    // SAFETY: the registers are read only.
    let set =
        unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, null_mut::<c_void>(), registers) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}
