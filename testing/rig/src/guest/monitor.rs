//! QEMU's monitor socket (QMP, `docs/interop/qmp-spec.rst`).

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Time limit of a reply.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);

/// Connection that executes commands.
#[derive(Debug)]
pub(crate) struct Monitor {
    reader: BufReader<UnixStream>,
}

impl Monitor {
    pub(crate) fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("QEMU's monitor is closed")?;
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let mut monitor = Self { reader: BufReader::new(stream) };
        monitor.line()?;
        monitor.execute("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    /// Runs a command and returns its result.
    pub(crate) fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        let line = json!({ "execute": command, "arguments": arguments }).to_string();
        self.reader.get_mut().write_all(line.as_bytes())?;
        loop {
            let mut response = self.line()?;
            if let Some(error) = response.get("error") {
                bail!("QEMU rejected `{command}`: {}", error["desc"]);
            }
            // Other messages are events.
            if let Some(result) = response.get_mut("return") {
                return Ok(result.take());
            }
        }
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            bail!("QEMU closed its monitor");
        }
        serde_json::from_str(&line).with_context(|| format!("not QMP: {line}"))
    }
}
