//! Streaming responses: lines of JSON, and captures.

use core::marker::PhantomData;

use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use serde::de::DeserializeOwned;

use crate::ClientError;
use crate::transport::connection_error;

/// Maximum length of a line in bytes.
const LINE_BYTES_MAX: usize = 4 << 20;
/// Header with the id of the stream's operation.
const OPERATION_HEADER: &str = "suimon-operation";

/// Stream of values, one JSON line each. Empty lines keep the connection alive and are skipped.
pub struct JsonLineStream<T> {
    path: String,
    body: Incoming,
    /// Received bytes that were not returned yet.
    pending: Vec<u8>,
    /// Number of bytes at the start of `pending` that are known to contain no line break.
    searched: usize,
    of: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> JsonLineStream<T> {
    pub(crate) fn new(path: String, answer: Response<Incoming>) -> Self {
        Self { path, body: answer.into_body(), pending: Vec::new(), searched: 0, of: PhantomData }
    }

    /// Returns the next value; `None` when the daemon has ended the stream. Cancel safe.
    ///
    /// # Errors
    /// The connection failed or a line is not a `T`; the stream has ended then.
    pub async fn next(&mut self) -> Result<Option<T>, ClientError> {
        loop {
            while let Some(line) = self.take_line() {
                if let Some(value) = self.parse(&line)? {
                    return Ok(Some(value));
                }
            }
            if self.pending.len() > LINE_BYTES_MAX {
                return Err(self.not_understood("a received line exceeds the length limit"));
            }
            match self.body.frame().await {
                None => {
                    let rest = core::mem::take(&mut self.pending);
                    self.searched = 0;
                    return self.parse(&rest);
                }
                Some(frame) => {
                    if let Ok(bytes) = frame.map_err(connection_error)?.into_data() {
                        self.pending.extend_from_slice(&bytes);
                    }
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let unsearched = self.pending.get(self.searched..)?;
        match unsearched.iter().position(|byte| *byte == b'\n') {
            Some(index) => {
                let end = self.searched.saturating_add(index).saturating_add(1);
                self.searched = 0;
                Some(self.pending.drain(..end).collect())
            }
            None => {
                self.searched = self.pending.len();
                None
            }
        }
    }

    fn parse(&self, line: &[u8]) -> Result<Option<T>, ClientError> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        suimon_contract::from_json(line)
            .map(Some)
            .map_err(|error| self.not_understood(&error.to_string()))
    }

    fn not_understood(&self, reason: &str) -> ClientError {
        ClientError::InvalidResponse { path: self.path.clone(), reason: reason.to_owned() }
    }
}

/// Running capture: a stream of pcapng bytes.
pub struct CaptureStream {
    operation: Option<u64>,
    body: Incoming,
}

impl CaptureStream {
    pub(crate) fn new(answer: Response<Incoming>) -> Self {
        let operation = answer
            .headers()
            .get(OPERATION_HEADER)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse().ok());
        Self { operation, body: answer.into_body() }
    }

    /// Returns the id of the capture's operation, which can be used to cancel it.
    pub fn operation_id(&self) -> Option<u64> {
        self.operation
    }

    /// Returns the next bytes; `None` when the capture is complete.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(bytes) = frame.map_err(connection_error)?.into_data() {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }
}
