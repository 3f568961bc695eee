//! Execution of commands in a guest over a serial line.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::Output;

/// Host's end of the line.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    unread: Vec<u8>,
    commands: u64,
    /// Files whose ends explain a missing reply: the kernel's output, and QEMU's.
    records: Vec<PathBuf>,
}

/// Text in the output of a kernel that has ended, where kernel and commands share the serial port.
const PANIC: &str = "Kernel panic - not syncing";

/// Lines of each record that are quoted.
const RECORD_LINES: usize = 60;

impl Channel {
    pub(crate) fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_millis(100)))?;
        Ok(Self { stream, unread: Vec::new(), commands: 0, records: Vec::new() })
    }

    /// Sets the files whose ends are quoted in the error if the guest has ended or does not reply.
    pub(crate) fn with_records(self, records: Vec<PathBuf>) -> Self {
        Self { records, ..self }
    }

    /// Reconnects to the line; data that was not read yet is lost.
    pub(crate) fn connect_again(&mut self, socket: &Path) -> Result<()> {
        let Self { stream, .. } = Self::connect(socket)?;
        self.stream = stream;
        self.unread.clear();
        Ok(())
    }

    /// Waits until the guest accepts commands.
    pub(crate) fn wait_ready(
        &mut self,
        limit: Duration,
        mut check_process: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let deadline = Instant::now() + limit;
        while self.line(deadline.min(Instant::now() + Duration::from_millis(500)))?.as_deref()
            != Some("READY")
        {
            check_process()?;
            if Instant::now() >= deadline {
                bail!("the guest did not boot within {limit:?}");
            }
        }
        Ok(())
    }

    /// Runs one line of shell in the guest.
    pub(crate) fn run(&mut self, command: &str, limit: Duration) -> Result<Output> {
        self.send(command)?;
        self.answer(limit).with_context(|| format!("in the guest: {command}"))
    }

    /// Sends a command without waiting; [`Channel::answer`] returns its result.
    pub(crate) fn send(&mut self, command: &str) -> Result<()> {
        if command.contains('\n') {
            bail!("a command for the guest is one line");
        }
        self.commands += 1;
        let line = format!("{} {command}\n", self.commands);
        self.stream.write_all(line.as_bytes()).context("the guest's serial line is closed")
    }

    /// Returns the result of the command sent last.
    pub(crate) fn answer(&mut self, limit: Duration) -> Result<Output> {
        let deadline = Instant::now() + limit;
        let begin = format!("BEGIN {}", self.commands);
        let end = format!("END {} ", self.commands);
        let mut lines: Option<Vec<String>> = None;
        loop {
            let Some(line) = self.line(deadline)? else {
                bail!("no answer within {limit:?}{}", self.last_words());
            };
            if line.contains(PANIC) {
                bail!("the guest has ended: {line}{}", self.last_words());
            }
            if line == begin {
                lines = Some(Vec::new());
            } else if let Some(code) = line.strip_prefix(&end) {
                let mut stdout = lines.unwrap_or_default().join("\n");
                stdout.truncate(stdout.trim_end().len());
                let code = code.trim().parse().context("no exit code")?;
                return Ok(Output { code, stdout, stderr: String::new() });
            } else if let Some(lines) = &mut lines {
                lines.push(line);
            }
        }
    }

    /// Returns the next line; `None` at the deadline.
    fn line(&mut self, deadline: Instant) -> Result<Option<String>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => bail!("the guest has ended{}", self.last_words()),
                Ok(length) => self.unread.extend_from_slice(&buffer[..length]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error).context("the guest's serial line"),
            }
        }
    }

    fn last_words(&self) -> String {
        let end_of = |file: &PathBuf| {
            let output = std::fs::read(file).unwrap_or_default();
            let output = String::from_utf8_lossy(&output);
            let lines: Vec<&str> = output.lines().collect();
            let end = lines[lines.len().saturating_sub(RECORD_LINES)..].join("\n");
            format!("; {} ends with:\n{end}\n", file.display())
        };
        self.records.iter().map(end_of).collect()
    }
}
