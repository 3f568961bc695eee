//! suimond under test, and its CLI.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::command::{Output, run_any};
use crate::process::Process;
use crate::programs::program;
use crate::rig::Rig;
use crate::wait::{wait_for_value, wait_until};

/// Time limit for the daemon to respond after its start.
const START_LIMIT: Duration = Duration::from_secs(90);
/// Time limit of a CLI command.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);
/// Time limit of a response without CLI.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Options of a daemon's start.
#[derive(Clone, Debug, Default)]
pub struct DaemonOptions {
    /// Additional arguments.
    pub arguments: Vec<String>,
    /// Start without `--config`.
    pub without_file: bool,
    /// Additional environment variables.
    pub environment: Vec<(&'static str, String)>,
}

/// Response of the API.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    /// HTTP status.
    pub status: u16,
    /// Body as JSON; `Null` if it is not JSON.
    pub json: Value,
    /// Body as text.
    pub text: String,
}

/// Running daemon; dropping it stops it.
#[derive(Debug)]
pub struct Daemon {
    process: Process,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    folder: String,
    file: String,
    socket: String,
    count: u32,
    expects_refusals: bool,
}

/// Text that the daemon logs when a system call of one of its threads was rejected.
const REFUSAL: &str = "which is not in its allow list, and the kernel denied it";

/// No test may cause a system call that the daemon has given up.
impl Drop for Daemon {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check_refusals();
        }
    }
}

impl Daemon {
    /// Starts a daemon with this host file, and waits until it responds.
    ///
    /// # Errors
    /// The daemon did not start, with the end of its log.
    pub fn start(rig: &Rig, host_toml: &str) -> Result<Self> {
        Self::start_with(rig, host_toml, &DaemonOptions::default())
    }

    /// Starts a daemon with options, and waits until it responds.
    ///
    /// # Errors
    /// The daemon did not start, with the end of its log.
    pub fn start_with(rig: &Rig, host_toml: &str, options: &DaemonOptions) -> Result<Self> {
        let name = rig.unique("daemon");
        let folder = rig.path(&name);
        fs::create_dir_all(format!("{folder}/state"))?;
        let file = format!("{folder}/host.toml");
        let socket = format!("{folder}/api.sock");
        fs::write(&file, host_toml)?;
        let mut arguments = vec![program("suimond")?];
        if !options.without_file {
            arguments.extend(["--config".to_owned(), file.clone()]);
        }
        arguments.extend([
            "--socket".to_owned(),
            socket.clone(),
            "--state-dir".to_owned(),
            format!("{folder}/state"),
        ]);
        arguments.extend(options.arguments.iter().cloned());
        let environment = options.environment.clone();
        let process = Process::start_in(rig, "suimond", &arguments, &environment)?;
        let mut daemon = Self {
            process,
            arguments,
            environment,
            folder,
            file,
            socket,
            count: 0,
            expects_refusals: false,
        };
        daemon.wait_answering()?;
        Ok(daemon)
    }

    /// Returns the path of the API's socket.
    pub fn socket(&self) -> &str {
        &self.socket
    }

    /// Returns a path in the daemon's folder.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// Returns the daemon's process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Runs the CLI and returns its result.
    ///
    /// # Errors
    /// The CLI could not be started.
    pub fn cli(&self, arguments: &[&str]) -> Result<Output> {
        let mut all_arguments =
            vec![program("suimon")?, "--socket".to_owned(), self.socket.clone()];
        all_arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        run_any(&all_arguments, COMMAND_LIMIT)
    }

    /// Runs the CLI, which must succeed, and returns its output.
    ///
    /// # Errors
    /// The CLI failed, with its error output.
    pub fn ok(&self, arguments: &[&str]) -> Result<String> {
        let output = self.cli(arguments)?;
        if !output.is_ok() {
            bail!(
                "`suimon {}` failed with {}: {}",
                arguments.join(" "),
                output.code,
                output.stderr.trim()
            );
        }
        Ok(output.stdout)
    }

    /// Runs the CLI with `--json` and returns its output.
    ///
    /// # Errors
    /// The CLI failed, or printed no JSON.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut json_arguments = vec!["--json"];
        json_arguments.extend(arguments);
        let text = self.ok(&json_arguments)?;
        serde_json::from_str(&text).with_context(|| format!("no JSON: {text}"))
    }

    /// Writes a host file and runs `suimon apply` with it.
    ///
    /// # Errors
    /// The CLI could not be started.
    pub fn apply(&mut self, host_toml: &str, extra: &[&str]) -> Result<Output> {
        self.count += 1;
        let file = self.path(&format!("applied-{}.toml", self.count));
        fs::write(&file, host_toml)?;
        let mut arguments = vec!["apply", "-f", &file];
        arguments.extend(extra);
        self.cli(&arguments)
    }

    /// Applies a host file, which must succeed.
    ///
    /// # Errors
    /// The file was rejected, with the reasons.
    pub fn apply_ok(&mut self, host_toml: &str) -> Result<String> {
        let output = self.apply(host_toml, &[])?;
        if !output.is_ok() {
            bail!("apply failed with {}: {}", output.code, output.stderr.trim());
        }
        Ok(output.stdout)
    }

    /// Sends a request to the API with curl.
    ///
    /// # Errors
    /// curl failed.
    pub fn http(&self, method: &str, path: &str, body: Option<&str>) -> Result<HttpResponse> {
        let address = format!("http://localhost{path}");
        let mut arguments = vec![
            "curl",
            "--silent",
            "--show-error",
            "--max-time",
            "100",
            "--unix-socket",
            &self.socket,
            "--request",
            method,
            "--write-out",
            "\n%{http_code}",
            &address,
        ];
        if let Some(body) = body {
            arguments.extend(["--header", "content-type: application/json", "--data-binary", body]);
        }
        let output = run_any(&arguments, COMMAND_LIMIT)?;
        let (text, status) =
            output.stdout.rsplit_once('\n').with_context(|| output.stderr.clone())?;
        Ok(HttpResponse {
            status: status.parse().context("no HTTP status")?,
            json: serde_json::from_str(text).unwrap_or(Value::Null),
            text: text.to_owned(),
        })
    }

    /// Sends a GET request to the API without starting a program, which would take CPU time and
    /// more time than the sampling interval.
    ///
    /// # Errors
    /// The response is not 200, or no JSON.
    pub fn get(&self, path: &str) -> Result<Value> {
        get_at(&self.socket, path)
    }

    /// Returns the CPU time of all threads.
    ///
    /// # Errors
    /// The daemon no longer runs.
    pub fn cpu_time(&self) -> Result<Duration> {
        self.process.cpu_time()
    }

    /// Returns the CPU time of the threads whose names begin with `prefix`.
    ///
    /// # Errors
    /// The daemon no longer runs, or has no such thread.
    pub fn threads_cpu_time(&self, prefix: &str) -> Result<Duration> {
        self.process.threads_cpu_time(prefix)
    }

    /// Waits until a resource is up.
    ///
    /// # Errors
    /// The resource is not up within 90 s, with its state.
    pub fn wait_up(&self, noun: &str, name: &str) -> Result<()> {
        wait_until(&format!("{noun} {name} up"), START_LIMIT, || {
            let status = self.json(&[noun, "show", name])?;
            if status["condition"]["health"] == "up" {
                return Ok(true);
            }
            bail!("{}", status["condition"])
        })
    }

    /// Kills the daemon, as a crash would end it.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Stops the daemon in order.
    ///
    /// # Errors
    /// The daemon did not stop in time.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.process.stop()
    }

    /// Restarts the daemon with the same file, socket and state.
    ///
    /// # Errors
    /// The daemon did not start, with the end of its log.
    pub fn restart(&mut self, rig: &Rig) -> Result<()> {
        self.process.kill();
        self.check_refusals();
        self.process = Process::start_in(rig, "suimond", &self.arguments, &self.environment)?;
        self.wait_answering()
    }

    /// Starts the daemon again after it was killed, and kills it `after` this time.
    ///
    /// # Errors
    /// The daemon could not be started.
    pub fn kill_at_start(&mut self, rig: &Rig, after: Duration) -> Result<()> {
        self.process.kill();
        self.check_refusals();
        self.process = Process::start_in(rig, "suimond", &self.arguments, &self.environment)?;
        std::thread::sleep(after);
        self.process.kill();
        Ok(())
    }

    /// Permits rejected system calls from now on.
    pub fn expect_refusals(&mut self) {
        self.expects_refusals = true;
    }

    /// Returns the path of the host file that it was started with.
    pub fn file(&self) -> &str {
        &self.file
    }

    fn check_refusals(&self) {
        let log = self.process.log();
        assert!(self.expects_refusals || !log.contains(REFUSAL), "{}", log.trim());
    }

    /// Waits until the API responds.
    ///
    /// # Errors
    /// The daemon ended or does not respond in time, with the end of its log.
    fn wait_answering(&mut self) -> Result<()> {
        wait_for_value("response of suimond", START_LIMIT, || {
            if !self.process.is_running() {
                return Ok(Some(()));
            }
            let responds = UnixStream::connect(&self.socket).is_ok()
                && self.http("GET", "/1.0", None).is_ok_and(|answer| answer.status == 200);
            Ok(responds.then_some(()))
        })
        .with_context(|| self.process.last_words())?;
        self.process.check_running()
    }
}

/// Sends a GET request to the API of the daemon at `socket`, which need not be a [`Daemon`] of the
/// caller.
///
/// # Errors
/// The daemon does not respond within a minute, or the response is not 200 with a JSON body.
pub(crate) fn get_at(socket: &str, path: &str) -> Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "GET {path}: {head}: {body}");
    serde_json::from_str(body).with_context(|| format!("GET {path}: {body}"))
}
