//! Start and reading of a capture.

use std::sync::Arc;
use std::time::Duration;

use suimon_contract::{ApiError, ErrorCode, EventKind, Operation};
use suimon_quantity::{CountedNoun, PortId, Time};
use suimon_switch::{CaptureBufferLimits, CapturedFrame};

use crate::errors::not_found;
use crate::events::EventDraft;
use crate::operations::OperationHandle;
use crate::shared::Shared;
use crate::{FrameCapture, PortKey};

/// Capture in progress. Dropping it ends the capture and its operation.
pub struct Capture {
    shared: Arc<Shared>,
    key: PortKey,
    /// Identifier of the captured port. It differs from that of a port created later under the same
    /// name.
    port: PortId,
    operation: OperationHandle,
    reader: Box<dyn FrameCapture>,
    frames: u64,
    end: Option<ApiError>,
}

impl Capture {
    /// Starts a capture of the frames that pass the port of a NIC, uplink, team or host NIC.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        key: &PortKey,
        options: CaptureBufferLimits,
    ) -> Result<Self, ApiError> {
        let port = shared.port_id(key).ok_or_else(|| not_found(key.resource_kind(), key.name()))?;
        let kind = format!("{} capture", key.kind());
        let operation = shared.operations.add(&kind, &key.to_string(), false)?;
        if let Err(error) = shared.captures.enter(key, operation.id()) {
            operation.end(&Err(error.clone()));
            return Err(error);
        }
        operation.begin();
        operation.report_step(0, "capturing");
        let text = format!("Operation {} captures frames of this port.", operation.id());
        let draft = EventDraft::new(EventKind::CaptureStarted, key, text);
        shared.events.append(vec![draft.with("operation", operation.id())]);
        // Frames on the kernel path bypass the switch. The refresh moves the port's frames back to
        // the switch.
        shared.refresh_kernel_paths();
        Ok(Self {
            shared: shared.clone(),
            key: key.clone(),
            port,
            reader: shared.plane.capture(port, options),
            operation,
            frames: 0,
            end: None,
        })
    }

    /// Returns the operation of this capture.
    pub fn operation(&self) -> Option<Operation> {
        self.operation.view()
    }

    /// Passes up to `frames_max` captured frames to `handle_frame` and returns their number. Blocks
    /// up to `timeout` for the first frame, and returns 0 if none was captured. Returns `None` if
    /// the capture was cancelled or the port was deleted.
    pub fn read(
        &mut self,
        timeout: Duration,
        frames_max: usize,
        handle_frame: &mut dyn FnMut(&CapturedFrame),
    ) -> Option<usize> {
        if let Err(error) = self.operation.check_cancelled() {
            self.end = Some(error);
            return None;
        }
        if self.shared.port_id(&self.key) != Some(self.port) {
            let error =
                ApiError::new(ErrorCode::NotFound, "the port was deleted during the capture");
            self.end = Some(error.with_resource(self.key.to_string()));
            return None;
        }
        let count = self.reader.read(timeout, frames_max, handle_frame);
        self.frames = self.frames.saturating_add(count as u64);
        Some(count)
    }

    /// Returns true if cancellation of the capture was requested.
    pub fn is_cancelled(&self) -> bool {
        self.operation.is_cancelled()
    }

    /// Returns the number of frames that were not copied because the buffer was full.
    pub fn dropped_frames(&self) -> u64 {
        self.reader.dropped_frames()
    }

    /// Returns the number of nanoseconds to add to a frame's time stamp to get the time since
    /// 1970-01-01 UTC.
    pub fn unix_offset_ns(&self) -> u64 {
        let now: Time = self.shared.plane.now();
        (self.shared.clock)().saturating_mul(1_000_000).saturating_sub(now.as_ns())
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.shared.captures.leave(self.operation.id());
        let dropped = self.reader.dropped_frames();
        let copied = CountedNoun::with_plural(self.frames, "frame was", "frames were");
        let missed = CountedNoun::with_plural(dropped, "was", "were");
        let text = format!("{copied} captured, {missed} dropped by the capture.");
        let draft = EventDraft::new(EventKind::CaptureStopped, &self.key, text);
        self.shared.events.append(vec![
            draft
                .with("operation", self.operation.id())
                .with("frames", self.frames)
                .with("dropped", dropped),
        ]);
        self.operation.end(&self.end.take().map_or(Ok(()), Err));
    }
}
