//! Client of the API: many requests over one connection, without a program in between.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::gate::Tally;

const PATIENCE: Duration = Duration::from_secs(120);

/// Connection to the API.
pub(super) struct Client<'a> {
    stream: BufReader<UnixStream>,
    tally: &'a Tally,
}

impl<'a> Client<'a> {
    pub(super) fn connect(socket: &str, totals: &'a Tally) -> Result<Self> {
        let stream = UnixStream::connect(socket).with_context(|| socket.to_owned())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        totals.count_connections(1);
        Ok(Self { stream: BufReader::new(stream), tally: totals })
    }

    /// Sends a request and returns status and body of the response, which must have a content
    /// length.
    pub(super) fn call(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
        self.send(method, path, body)?;
        let (status, length) = self.head().with_context(|| format!("{method} {path}"))?;
        let length = length.with_context(|| format!("{method} {path}: no length"))?;
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        self.tally.count_call();
        Ok((status, answer))
    }

    pub(super) fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    /// Reads the head of a response: status, and the length of the body if it has one.
    pub(super) fn head(&mut self) -> Result<(u16, Option<usize>)> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).with_context(|| format!("no status: {line}"))?;
        let (status, mut length) = (status.parse()?, None);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((key, value)) = line.trim_end().split_once(": ") else { break };
            if key.eq_ignore_ascii_case("content-length") {
                length = Some(value.parse()?);
            }
        }
        Ok((status, length))
    }

    /// Reads at least one byte of a body without a length.
    pub(super) fn read_some(&mut self) -> Result<()> {
        let count = self.stream.fill_buf()?.len();
        ensure!(count > 0, "the stream has ended");
        self.stream.consume(count);
        Ok(())
    }

    /// Sends a GET request, which must succeed with a JSON body.
    pub(super) fn get(&mut self, path: &str) -> Result<Value> {
        let (status, body) = self.call("GET", path, "")?;
        let text = String::from_utf8_lossy(&body);
        ensure!(status == 200, "GET {path}: {status}: {text}");
        serde_json::from_slice(&body).with_context(|| format!("GET {path}: {text}"))
    }

    /// Requests a change and blocks until its operation has succeeded.
    pub(super) fn change(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let (status, answer) = self.call(method, path, body)?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(status == 202, "{method} {path} {body}: {status}: {text}");
        let id = serde_json::from_slice::<Value>(&answer)?["id"].as_u64().context("no id")?;
        loop {
            let now = self.get(&format!("/1.0/operations/{id}/wait?timeout_s=30"))?;
            if now["state"] != "running" {
                ensure!(now["state"] == "succeeded", "{method} {path} {body}: {now}");
                return Ok(());
            }
        }
    }
}
