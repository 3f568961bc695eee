//! `suimond`: program entry point; see the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    suimond::daemon::run(&suimond::cli::Arguments::parse())
}
