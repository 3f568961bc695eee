//! Output of commands.

use std::io::{self, Write};

use anyhow::Result;

/// Writes a text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}
