//! Standard output as text or JSON.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use serde::Serialize;
use suimon_client::Client;
use suimon_contract::{to_json, to_json_pretty};

/// Context of every command: connection to the daemon, and output format.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) prints_json: bool,
    /// Unix socket of this host's daemon.
    pub(crate) socket: PathBuf,
}

impl Context {
    /// Prints a value as JSON if requested, else as formatted by `text`.
    pub(crate) fn show<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> io::Result<()> {
        if self.prints_json { print_json(value) } else { print(&text(value)) }
    }

    /// Prints one value of a stream as one line of JSON or text.
    pub(crate) fn show_line<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> io::Result<()> {
        let line = if self.prints_json {
            String::from_utf8_lossy(&to_json(value)?).into_owned()
        } else {
            text(value)
        };
        print(&format!("{line}\n"))
    }
}

/// Prints text unchanged and flushes it.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns a value as indented JSON, with old and new names of renamed fields.
pub(crate) fn json_text<T: Serialize>(value: &T) -> io::Result<String> {
    let mut text = to_json_pretty(value)?;
    text.push('\n');
    Ok(text)
}

/// Prints a value as indented JSON, with old and new names of renamed fields.
pub(crate) fn print_json<T: Serialize>(value: &T) -> io::Result<()> {
    print(&json_text(value)?)
}

/// Returns true if standard output is a terminal.
pub(crate) fn is_stdout_terminal() -> bool {
    io::stdout().is_terminal()
}
