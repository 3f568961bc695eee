//! fio as a client of disks, over NBD or on files.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Result of a fio job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FioResult {
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Requests completed after the ramp time.
    pub requests: u64,
    /// Requests that failed.
    pub errors: u64,
}

/// Target of a job.
#[derive(Clone, Copy, Debug)]
pub enum FioTarget<'a> {
    /// A disk at an NBD socket.
    Nbd {
        /// Path of the server's socket.
        socket: &'a str,
        /// Name of the export.
        disk: &'a str,
    },
    /// File or block device, accessed with direct I/O by io_uring.
    File(&'a str),
}

impl FioTarget<'_> {
    /// Returns fio's options for the target, without hyphens.
    fn options(&self) -> Vec<String> {
        match self {
            Self::Nbd { socket, disk } => {
                vec!["ioengine=nbd".to_owned(), format!("uri=nbd+unix:///{disk}?socket={socket}")]
            }
            Self::File(path) => vec![
                "ioengine=io_uring".to_owned(),
                "direct=1".to_owned(),
                format!("filename={path}"),
            ],
        }
    }
}

/// Returns the command of a job on the disk `disk` at an NBD socket. `job` contains fio's options,
/// separated by spaces. fio writes its files to `folder`.
#[must_use]
pub fn command(folder: &Path, socket: &str, disk: &str, job: &str) -> Command {
    command_on(folder, FioTarget::Nbd { socket, disk }, job)
}

fn command_on(folder: &Path, target: FioTarget<'_>, job: &str) -> Command {
    let mut command = Command::new("timeout");
    command.arg("300").args(words(target, job)).current_dir(folder);
    command
}

/// Returns fio with the arguments of a job.
#[must_use]
pub fn words(target: FioTarget<'_>, job: &str) -> Vec<String> {
    let mut arguments = ["fio", "--name=job", "--output-format=json"].map(str::to_owned).to_vec();
    arguments.extend(target.options().iter().map(|option| format!("--{option}")));
    arguments.extend(job.split_whitespace().map(str::to_owned));
    arguments
}

/// Runs a job to its end.
///
/// # Errors
/// fio failed, or read other data than it had written.
pub fn run(folder: &Path, socket: &str, disk: &str, job: &str) -> Result<FioResult> {
    run_on(folder, FioTarget::Nbd { socket, disk }, job)
}

/// Runs a job on any target.
///
/// # Errors
/// fio failed, or read other data than it had written.
pub fn run_on(folder: &Path, target: FioTarget<'_>, job: &str) -> Result<FioResult> {
    let output = command_on(folder, target, job).output().context("fio")?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "fio {job}: {stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    result(&stdout)
}

/// Parses fio's output, summed over all its jobs.
///
/// # Errors
/// The output cannot be parsed.
pub fn result(output: &str) -> Result<FioResult> {
    // Messages may precede the JSON.
    let json_text =
        output.find('{').map(|json_start| &output[json_start..]).context("fio printed no JSON")?;
    let result: Value = serde_json::from_str(json_text).context("fio's output")?;
    let jobs = result["jobs"].as_array().context("fio reported no jobs")?;
    let sum = |kind: &str| jobs.iter().filter_map(|job| job[kind]["iops"].as_f64()).sum();
    let count =
        |kind: &str| jobs.iter().filter_map(|job| job[kind]["total_ios"].as_u64()).sum::<u64>();
    Ok(FioResult {
        read_iops: sum("read"),
        write_iops: sum("write"),
        requests: ["read", "write"].iter().map(|kind| count(kind)).sum(),
        errors: jobs.iter().filter_map(|job| job["error"].as_u64()).sum(),
    })
}

/// Returns a job file that loads several targets with the same options at once. `job` contains the
/// options without hyphens. Each target's bytes per second are written to a log, which [`seconds`]
/// reads.
#[must_use]
pub fn job_file(targets: &[FioTarget<'_>], job: &str) -> String {
    let mut text = "[global]\nthread\nlog_avg_msec=1000\nlog_unix_epoch=1\n".to_owned();
    for option in job.split_whitespace() {
        let _ = writeln!(text, "{option}");
    }
    for (index, target) in targets.iter().enumerate() {
        let _ = writeln!(text, "[job{index}]\nwrite_bw_log={LOG}\n{}", target.options().join("\n"));
    }
    text
}

const LOG: &str = "seconds";

/// Returns the throughput of target `index` of a job file in each second: the end of the second in
/// milliseconds since 1970, and bytes per second. `folder` is the one in which fio ran, which must
/// have ended.
///
/// # Errors
/// fio wrote no such log.
pub fn seconds(folder: &Path, index: usize) -> Result<Vec<(u64, u64)>> {
    let file = folder.join(format!("{LOG}_bw.{}.log", index + 1));
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    text.lines().map(|line| second(line).with_context(|| format!("fio's log: {line}"))).collect()
}

/// Parses a line of a bandwidth log: time in ms, KiB/s, and unused fields (fio's manual, "Log File
/// Formats").
fn second(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split(',').map(|field| field.trim().parse::<u64>());
    let (time, rate) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((time, rate.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_file_names_each_target_and_its_log() {
        let targets = [FioTarget::Nbd { socket: "/s", disk: "a" }, FioTarget::File("/f")];
        let text = job_file(&targets, "rw=randwrite bs=512k");
        assert!(text.contains("\nrw=randwrite\nbs=512k\n[job0]\n"), "{text}");
        assert!(text.contains("uri=nbd+unix:///a?socket=/s\n[job1]\n"), "{text}");
        assert!(text.ends_with("direct=1\nfilename=/f\n"), "{text}");
    }

    #[test]
    fn results_of_all_jobs_are_one() {
        let output = "fio: note\n{\"jobs\": [{\"read\": {\"iops\": 1.5, \"total_ios\": 9}, \"error\": 0},\
                    {\"write\": {\"iops\": 2.0, \"total_ios\": 4}, \"read\": {\"iops\": 1.0}, \"error\": 5}]}";
        let expected = FioResult { read_iops: 2.5, write_iops: 2.0, requests: 13, errors: 5 };
        assert_eq!(result(output).unwrap(), expected);
        assert!(result("nothing").is_err() && result("{}").is_err());
    }

    #[test]
    fn logs_of_bandwidth_are_read() {
        assert_eq!(second("1795395246068, 14336, 1, 0, 0"), Some((1_795_395_246_068, 14_680_064)));
        assert_eq!(second("1795395246068"), None);
        assert_eq!(second("x, 1"), None);
    }
}
