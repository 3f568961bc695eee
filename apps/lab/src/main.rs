//! `suimon-lab`, or `suimon lab`: runs published experiments on this host.
//!
//! A plan says what is set up, loaded and sampled. The lab does that with a suimond of its own,
//! beside the one that may run here, in namespaces that it makes; records everything; and lays
//! what came out beside what was published and what the simulator says.
//!
//! ```text
//! plan ── experiment ── parts (case × repetition) ── run.json ── report, compare, advise
//!           (kinds/)        parts.jsonl                 ▲
//!                                      sim ─────────────┘ the same format
//! ```
//!
//! What it does not do: it changes nothing of the host's own Suimon, and sends nothing outside
//! the machine.
//!
//! Invariants: a part that was measured is on the disk before the next begins; whatever ends the
//! program, what it started is ended by its other half or by the next run.
#![forbid(unsafe_code)]

mod advise;
mod cli;
mod compare;
mod documents;
mod experiment;
mod guard;
mod judged;
mod kinds;
mod loads;
mod machine;
mod number;
mod plan;
mod profile;
mod progress;
mod record;
mod report;
mod results;
mod run;
mod runner;
mod sampling;
mod setup;
mod shown;
mod simulate;
mod words;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
