//! `suimon-lab`, executed as `suimon lab`: runs published experiments on this host.
//!
//! A plan defines setup, load and measures. The lab executes it with a daemon of its own,
//! independent of one that may run on the host, in namespaces that it creates; records all values;
//! and compares the results with the published and the simulated ones.
//!
//! ```text
//! plan ── experiment ── repetitions of cases ── run.json ── report, compare, advise
//!     (lab-experiments)     parts.jsonl            ▲
//!                                      sim ────────┘ the same format
//! ```
//!
//! The program does not change the host's own Suimon and sends no data to other machines.
//!
//! Invariants: the values of a repetition are on the disk before the next one begins. After any end
//! of the program, its supervising process or the next run removes the processes and devices that
//! it left.
#![forbid(unsafe_code)]

mod advise;
mod cli;
mod compare;
mod documents;
mod evaluation;
mod exit;
mod list;
mod machine;
mod number;
mod output;
mod plan;
mod profile;
mod progress;
mod report;
mod results;
mod run;
mod runner;
mod setup;
mod shared_flags;
mod show;
mod simulate;
mod supervision;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
