//! `sim`: the policies of Suimon in virtual time.
//!
//! A scenario describes a host and what happens to it; models stand for its hardware, and the
//! very policies that run in production decide. The same scenario with the same seed gives the
//! same run, bit for bit. Checkers hold what happens against what was promised.
//!
//! What it does not do: it touches no host, reads no clock, and opens nothing but the files that
//! it is given. Threads exist between runs (`swarm`), never in one.
#![forbid(unsafe_code)]

mod cli;
mod cluster;
mod figure;
mod fleet;
mod host;
mod kernel;
mod network;
mod outcome;
mod processors;
mod recording;
mod scenario;
mod storage;
mod swarm;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
