//! fio as an NBD client of a disk, and on a file by itself.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// What a job of fio got.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FioResult {
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Requests that failed.
    pub errors: u64,
}

/// The command of a job on the disk `disk` at an NBD socket; `job` has fio's words for it,
/// separated by spaces. What fio writes goes to `folder`.
#[must_use]
pub fn command(folder: &Path, socket: &str, disk: &str, job: &str) -> Command {
    let uri = format!("--uri=nbd+unix:///{disk}?socket={socket}");
    command_of(folder, &["--ioengine=nbd", &uri], job)
}

fn command_of(folder: &Path, target: &[&str], job: &str) -> Command {
    let mut command = Command::new("timeout");
    command.arg("120").arg("fio").current_dir(folder);
    command.args(["--name=job", "--output-format=json"]).args(target);
    command.args(job.split_whitespace());
    command
}

/// Runs a job to its end.
///
/// # Errors
/// fio failed, or what it wrote was not read back.
pub fn run(folder: &Path, socket: &str, disk: &str, job: &str) -> Result<FioResult> {
    done(command(folder, socket, disk, job), job)
}

/// Runs a job on a file to its end, by io_uring past the page cache.
///
/// # Errors
/// fio failed.
pub fn run_on_file(file: &Path, job: &str) -> Result<FioResult> {
    let name = format!("--filename={}", file.display());
    let folder = file.parent().context("a file is in a directory")?;
    done(command_of(folder, &["--ioengine=io_uring", "--direct=1", &name], job), job)
}

fn done(mut command: Command, job: &str) -> Result<FioResult> {
    let output = command.output().context("fio")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "fio {job}: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    result(&said)
}

/// What a job's output says.
///
/// # Errors
/// It is none.
pub fn result(said: &str) -> Result<FioResult> {
    // Notes may come before it.
    let told = said.find('{').map(|at| &said[at..]).context("fio tells nothing")?;
    let told: Value = serde_json::from_str(told).context("fio's output")?;
    let job = &told["jobs"][0];
    Ok(FioResult {
        read_iops: job["read"]["iops"].as_f64().unwrap_or_default(),
        write_iops: job["write"]["iops"].as_f64().unwrap_or_default(),
        errors: job["error"].as_u64().unwrap_or_default(),
    })
}
