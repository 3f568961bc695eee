//! A conformance suite for LACP (IEEE 802.1AX, clause 6), from outside.
//!
//! The suite owns the far ends of a device's links. It plays the partner, and
//! sometimes the wire, and judges what the device sends: its LACPDUs tell what its
//! machines do, and a probe behind its team tells whether frames pass.
//!
//! - `pdu`: its own codec, shared with nobody it judges.
//! - `world`: packet sockets and the clock; in unit tests, virtual time and a device.
//! - `session`, `partner`: partners that play by themselves, and what was heard.
//! - `cases`: the questions. `run`, `report`: their answers.
//!
//! What it does not do: it configures no device and needs nothing of its insides.
//!
//! Invariants: every wait has a limit; what the device sends is never trusted to be
//! well formed; every finding names its clause.
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
            let long = if case.is_long { " (long)" } else { "" };
            writeln!(out, "{:<32} {}{long} [{}]", case.id, case.title, case.clause)?;
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
