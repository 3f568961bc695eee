//! A launcher for a daemon that finds none.
#![allow(unsafe_code, reason = "setsid between fork and exec")]

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::peer::connect_to;

/// Time for a launcher to listen. It takes some milliseconds, and seconds on a machine that is
/// overloaded; one that fails ends at once.
const LIMIT: Duration = Duration::from_secs(30);

/// Starts `command`, which becomes a launcher that listens at `socket`, unless one answers there.
/// It is in a session of its own, so that it goes on when the caller ends; nothing comes to its
/// stdin. Says whether one was started.
///
/// To be called before the calling process gives up starting programs.
///
/// # Errors
/// The program cannot be started, or does not listen within 30 s.
pub fn start_launcher(socket: &Path, mut command: Command) -> io::Result<bool> {
    if connect_to(socket).is_ok() {
        return Ok(false);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    // SAFETY: between fork and exec one system call is made, which takes nothing.
    unsafe {
        command.pre_exec(
            || {
                if libc::setsid() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
            },
        );
    }
    let mut child = command.spawn()?;
    let until = Instant::now() + LIMIT;
    loop {
        if connect_to(socket).is_ok() {
            return Ok(true);
        }
        if let Some(status) = child.try_wait()? {
            return Err(io::Error::other(format!("the launcher of VMs ended with {status}")));
        }
        if Instant::now() >= until {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::other("the launcher of VMs does not listen"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
