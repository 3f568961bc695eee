//! What programs for tests, measurements and the demonstration share: exit status and error output,
//! and the rules of a store with injected faults.

mod store_faults;

use std::process::ExitCode;

use anyhow::{Error, Result};

pub use store_faults::{FaultEffect, StoreFault, StoreOperation};

/// Returns the exit status for a result. An error is written to standard error as one line that
/// begins with the program's name.
pub fn end_program(program: &str, result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {}", one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// Returns an error as one line. Of output of a program quoted in the error, only the last line is
/// kept, which states the reason.
fn one_line(error: &Error) -> String {
    let text = format!("{error:#}");
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next_back() {
        Some(last) => format!("{first} ... {last}"),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn an_error_is_one_line_with_the_reason_at_its_end() {
        let error = anyhow::anyhow!("no such device").context("fio failed");
        assert_eq!(one_line(&error), "fio failed: no such device");
        let quoted = anyhow::anyhow!("fio says:\nline 1\n\n  no space left\n");
        assert_eq!(one_line(&quoted), "fio says: ... no space left");
    }
}
