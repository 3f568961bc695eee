//! Control socket: one request in a line, one reply in a line.
//!
//! | request | effect |
//! |---|---|
//! | `fault RULE` | Adds a rule. |
//! | `clear` | Removes all rules, resumes held operations, sets the counts to zero. |
//! | `counts` | Returns the number of operations of each kind. |

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;

use anyhow::{Result, bail};

use crate::faults::Faults;

/// Serves clients of the socket, each in a thread.
pub(crate) fn serve(listener: &UnixListener, faults: &Arc<Faults>) {
    for stream in listener.incoming().flatten() {
        let faults = Arc::clone(faults);
        thread::spawn(move || {
            // A client that has gone needs no reply.
            let _ = serve_client(&stream, &faults);
        });
    }
}

fn serve_client(stream: &UnixStream, faults: &Faults) -> Result<()> {
    for line in BufReader::new(stream).lines() {
        let reply = match execute(&line?, faults) {
            Ok(reply) => reply,
            Err(error) => format!("error {error:#}"),
        };
        let mut to = stream;
        writeln!(to, "{reply}")?;
    }
    Ok(())
}

fn execute(request: &str, faults: &Faults) -> Result<String> {
    match request.split_once(' ').unwrap_or((request, "")) {
        ("fault", rule) => faults.add(rule.parse()?),
        ("clear", "") => faults.clear(),
        ("counts", "") => return Ok(faults.counts()),
        _ => bail!("unknown request `{request}`"),
    }
    Ok("ok".to_owned())
}
