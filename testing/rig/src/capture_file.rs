//! What an independent reader finds in a capture.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::run;

/// A capture as tcpdump reads it.
#[derive(Clone, Debug)]
pub struct CaptureSummary {
    /// One line for each frame, with link-level header and full time.
    pub lines: Vec<String>,
}

/// Lets tcpdump read a pcapng file.
///
/// # Errors
/// tcpdump does not accept it.
pub fn summarize_capture(file: &Path) -> Result<CaptureSummary> {
    let file = file.to_str().context("the path is not UTF-8")?;
    let text = run(&["tcpdump", "-nn", "-e", "-tttt", "--nano", "-v", "-r", file])?;
    // Continuation lines of -v begin with a blank.
    let lines = text.lines().filter(|l| !l.starts_with([' ', '\t'])).map(str::to_owned).collect();
    Ok(CaptureSummary { lines })
}
