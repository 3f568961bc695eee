//! One bash that runs the commands of a page, so that variables, functions and background processes
//! last.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use suimon_rig::Rig;

use crate::host::{Environment, WORK};

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    /// Exit status.
    pub(crate) status: i32,
    /// Standard output and standard error in the order in which they were written.
    pub(crate) output: Vec<String>,
}

/// A running bash. Dropping it kills it; processes that it started end with the test's namespace.
#[derive(Debug)]
pub(crate) struct Shell {
    child: Child,
    input: ChildStdin,
    /// Exit statuses, one for each command.
    statuses: Receiver<String>,
    folder: PathBuf,
    commands: usize,
}

impl Shell {
    /// Starts bash in the folder of the rig in which pages are executed.
    ///
    /// # Errors
    /// bash cannot be started.
    pub(crate) fn start(rig: &Rig, environment: &Environment) -> Result<Self> {
        let folder = rig.file("commands");
        fs::create_dir(&folder)?;
        let log = fs::File::create(folder.join("bash.log"))?;
        let mut child = Command::new("bash")
            .args(["--norc", "--noprofile", "-s"])
            .env_clear()
            .envs(environment.iter().map(|(key, value)| (*key, value)))
            .current_dir(rig.file(WORK))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start bash")?;
        let input = child.stdin.take().context("bash has no standard input")?;
        let output = child.stdout.take().context("bash has no standard output")?;
        let (sender, statuses) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, input, statuses, folder, commands: 0 })
    }

    /// Runs a command and waits for its end.
    ///
    /// # Errors
    /// The command does not end within `limit`, or ends bash. The error contains the output.
    pub(crate) fn run(&mut self, command: &str, limit: Duration) -> Result<Done> {
        self.commands += 1;
        let [file, output] =
            ["sh", "out"].map(|end| self.folder.join(format!("{}.{end}", self.commands)));
        fs::write(&file, format!("{command}\n"))?;
        let (source, target) = (file.display(), output.display());
        writeln!(self.input, "source {source} </dev/null >{target} 2>&1; echo $?")?;
        let status = self.statuses.recv_timeout(limit);
        let read = || -> Result<Vec<String>> {
            let text = String::from_utf8_lossy(&fs::read(&output)?).into_owned();
            Ok(text.lines().map(str::to_owned).collect())
        };
        match status {
            Ok(status) => Ok(Done { status: status.trim().parse()?, output: read()? }),
            Err(RecvTimeoutError::Timeout) => {
                bail!("it has not ended after {limit:?}; its output:\n{}", read()?.join("\n"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                bail!("it has ended bash; its output:\n{}", read()?.join("\n"))
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
