//! `sim`: policies of Suimon in virtual time.
//!
//! A scenario describes a host and events. Models represent its hardware, and the production
//! policies make the decisions. The same scenario with the same seed results in the same run, bit
//! for bit. Checkers compare facts with guarantees.
//!
//! The program accesses no host resources and no clock, and opens only the files given to it.
//! Threads are used between runs (`swarm`), never within one.
#![forbid(unsafe_code)]

mod calibrate;
mod cli;
mod failure;
mod output;
mod recording;
mod run;
mod scenario;
mod swarm;
mod tables;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
