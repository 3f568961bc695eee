//! Output of checks and tests.

use std::fmt::Display;
use std::io::{self, Write as _};

/// Prints a line. If the output is closed, as after `make test | tee`, the run continues and still
/// removes what its tests leave behind.
pub(crate) fn print_line(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}
