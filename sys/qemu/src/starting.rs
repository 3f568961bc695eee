//! Starts the launcher as a process of its own, for the daemon.
#![allow(unsafe_code, reason = "setsid between fork and exec")]

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::messages::connect_to;

/// Time limit for a started launcher to listen on its socket. This takes milliseconds, and seconds
/// on an overloaded machine. A failing launcher exits at once.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum length in bytes of the error message that is read from a failed launcher.
const REASON_BYTES_MAX: u64 = 4096;

/// Starts `command`, which becomes a launcher that listens at `socket`, unless a launcher responds
/// there already. Returns true if it was started. The new launcher runs in a session of its own, so
/// that it continues when the caller ends; its stdin is empty. A failing launcher must write the
/// reason to its stdout, which becomes part of the error. A successful one must write nothing
/// there.
///
/// Must be called before the calling process gives up the right to execute programs.
///
/// # Errors
/// The program cannot be started, or does not listen within 30 s.
pub fn start_launcher(socket: &Path, mut command: Command) -> io::Result<bool> {
    if connect_to(socket).is_ok() {
        return Ok(false);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // SAFETY: between fork and exec one system call without arguments is made.
    unsafe {
        command.pre_exec(
            || {
                if libc::setsid() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
            },
        );
    }
    let mut child = command.spawn()?;
    let deadline = Instant::now() + LIMIT;
    loop {
        if connect_to(socket).is_ok() {
            return Ok(true);
        }
        if let Some(status) = child.try_wait()? {
            return Err(io::Error::other(match reason_of(&mut child) {
                Some(reason) => format!("the VM launcher failed: {reason}"),
                None => format!("the VM launcher ended with {status}"),
            }));
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::other("the VM launcher does not listen"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the text that a failed launcher has written to its stdout; `None` if there is none.
/// Blocks until the launcher has closed its stdout.
fn reason_of(child: &mut Child) -> Option<String> {
    let mut reason = Vec::new();
    child.stdout.take()?.take(REASON_BYTES_MAX).read_to_end(&mut reason).ok()?;
    let reason = String::from_utf8_lossy(&reason).trim().to_owned();
    (!reason.is_empty()).then_some(reason)
}
