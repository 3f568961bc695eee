//! Contents of a capture according to an independent reader.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::run;

/// Capture as tcpdump prints it.
#[derive(Clone, Debug)]
pub struct CaptureSummary {
    /// One line per frame, with link-level header and full time.
    pub lines: Vec<String>,
}

/// Reads a pcapng file with tcpdump.
///
/// # Errors
/// tcpdump rejects the file.
pub fn summarize_capture(file: &Path) -> Result<CaptureSummary> {
    let file = file.to_str().context("the path is not UTF-8")?;
    let text = run(&["tcpdump", "-nn", "-e", "-tttt", "--nano", "-v", "-r", file])?;
    // Continuation lines of -v begin with a blank.
    let lines = text.lines().filter(|l| !l.starts_with([' ', '\t'])).map(str::to_owned).collect();
    Ok(CaptureSummary { lines })
}
