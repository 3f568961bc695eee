//! Black-box conformance test suite for LACP (IEEE 802.1AX, clause 6).
//!
//! The suite uses the far ends of a device's links. It acts as the partner, in some cases as a
//! looped cable, and checks what the device sends: its LACPDUs report the state of its state
//! machines, and a probe of a host behind its team shows whether frames are forwarded.
//!
//! - `pdu`: a codec of its own, shared with no tested device.
//! - `world`: packet sockets and the clock; in unit tests virtual time and a virtual device.
//! - `session`, `partner`: simulated partners, and the record of received frames.
//! - `cases`: the test cases. `run`, `report`: their execution and results.
//!
//! The suite does not configure the device and does not access its internals.
//!
//! Invariants: every wait has a limit; frames of the device are never assumed to be valid; every
//! finding names its clause.
#![deny(unsafe_code)]

mod cases;
mod options;
mod partner;
mod pdu;
mod probe;
mod record;
mod report;
mod run;
mod session;
mod setup;
mod verdict;
mod world;

#[cfg(test)]
mod virtual_device;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::options::Options;
use crate::report::Report;
use crate::session::Session;
use crate::world::Packets;

fn main() -> ExitCode {
    match judge(Options::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("lacp-conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn judge(options: Options) -> Result<u8> {
    let mut out = io::stdout().lock();
    let cases = options.cases()?;
    if options.list {
        for case in cases {
            let suffix = if case.is_long { " (long)" } else { "" };
            writeln!(out, "{:<32} {}{suffix} [{}]", case.id, case.title, case.clause)?;
        }
        return Ok(0);
    }
    let setup = options.setup();
    let mut world = Packets::open(&options.interfaces, options.link_command)?;
    let mut session = Session::new(&mut world, setup);
    let mut findings = Vec::new();
    for case in cases {
        if setup.trace {
            eprintln!("--- {}", case.id);
        }
        let finding = run::run(case, &mut session);
        if !options.json {
            finding.write(&mut out)?;
            out.flush()?;
        }
        findings.push(finding);
    }
    let report = Report::new(options.device, options.interfaces, findings);
    if options.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        report.write_totals(&mut out)?;
    }
    Ok(report.exit_code())
}
