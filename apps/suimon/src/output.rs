//! Standard output: as text for people or as JSON for programs.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use serde::Serialize;
use suimon_client::Client;

/// What every command needs: the daemon, and how to show what it says.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) json: bool,
    /// Socket of this host's daemon.
    pub(crate) socket: PathBuf,
}

impl Context {
    /// Prints a value: as JSON if that is asked for, else as `text` makes it.
    pub(crate) fn show<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> io::Result<()> {
        if self.json { print_json(value) } else { print(&text(value)) }
    }

    /// Prints one value of a stream: one JSON line, or one line of text.
    pub(crate) fn show_line<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> io::Result<()> {
        let line = if self.json { serde_json::to_string(value)? } else { text(value) };
        print(&format!("{line}\n"))
    }
}

/// Prints text as it is and flushes it.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Prints a value as JSON for people to read too.
pub(crate) fn print_json<T: Serialize>(value: &T) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}
