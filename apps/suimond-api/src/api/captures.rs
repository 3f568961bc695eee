//! Captures as streams of pcapng.
//!
//! A thread takes frames out of the capture's bounded ring and sends pieces of the file to the
//! connection through a bounded channel. A client that reads too slowly loses frames, which are
//! counted and reported at the end. The data plane is not affected.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde::Deserialize;
use suimon_node::{Capture, PortKey};
use suimon_quantity::Direction;
use suimon_switch::{CaptureBufferLimits, CapturedFrame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use utoipa::IntoParams;

use crate::api::bounded_integer::{BoundedInteger, Count};
use crate::api::state::ApiState;
use crate::http::ErrorResponse;
use crate::pcapng::{self, Packet, PacketDirection};

/// Capacity of the channel to the connection, in pieces of the pcapng file.
const PIECES_WAITING: usize = 16;
/// Largest number of frames in one piece.
const FRAMES_PER_PIECE: usize = 64;
/// Longest time to wait for frames before the thread checks for cancellation and the end of the
/// connection.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of attempts to send to a full channel.
const ROOM_EVERY: Duration = Duration::from_millis(10);

/// Number of bytes captured of each frame.
type SnapLength = BoundedInteger<0, { u32::MAX as u64 }>;

/// Query parameters that limit a capture.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct CaptureParameters {
    /// Bytes captured of each frame; whole frames if absent or 0.
    #[param(inline)]
    pub snaplen: Option<SnapLength>,
    /// Number of frames after which the capture ends; no limit if absent.
    #[param(inline)]
    pub max_frames: Option<Count>,
    /// Number of bytes of frames after which the capture ends; no limit if absent.
    #[param(inline)]
    pub max_bytes: Option<Count>,
}

/// Starts a capture. The response is a stream of pcapng.
pub(super) async fn begin(
    state: &ApiState,
    key: PortKey,
    parameters: CaptureParameters,
) -> Result<Response, ErrorResponse> {
    let snaplen = parameters.snaplen.and_then(|snaplen| u32::try_from(snaplen.value()).ok());
    let snaplen = snaplen.filter(|snaplen| *snaplen > 0);
    let mut options = CaptureBufferLimits::default();
    options.snaplen = snaplen.unwrap_or(options.snaplen).min(options.snaplen);
    let is_uplink = matches!(key, PortKey::Uplink(_));
    let name = key.to_string();
    let capture = state.call_blocking(move |node| node.capture(&key, options)).await?;
    let operation = capture.operation().map_or(0, |operation| operation.id);
    let (pieces, receiver) = mpsc::channel(PIECES_WAITING);
    let ended = state.notifications.stopping.clone();
    let writer = Writer {
        unix_offset_ns: capture.unix_offset_ns(),
        capture,
        parameters,
        snaplen: options.snaplen,
        is_uplink,
        name,
        pieces,
        ended,
        frames: 0,
        bytes: 0,
    };
    tokio::task::spawn_blocking(move || writer.run());
    let headers = [
        (header::CONTENT_TYPE, "application/x-pcapng".to_owned()),
        (header::HeaderName::from_static("suimon-operation"), operation.to_string()),
    ];
    let stream = ReceiverStream::new(receiver).map(Ok::<Bytes, std::convert::Infallible>);
    Ok((headers, Body::from_stream(stream)).into_response())
}

struct Writer {
    capture: Capture,
    parameters: CaptureParameters,
    snaplen: u32,
    is_uplink: bool,
    name: String,
    pieces: mpsc::Sender<Bytes>,
    ended: watch::Receiver<bool>,
    unix_offset_ns: u64,
    frames: u64,
    bytes: u64,
}

impl Writer {
    fn run(mut self) {
        let mut piece = Vec::new();
        let application = concat!("suimond ", env!("CARGO_PKG_VERSION"));
        pcapng::write_start(&mut piece, application, &self.name, self.snaplen);
        let mut last_time = 0;
        loop {
            if !piece.is_empty() && !self.send(std::mem::take(&mut piece)) {
                return;
            }
            let Some(captured_max) = self.filter() else { break };
            if self.pieces.is_closed() || *self.ended.borrow() {
                break;
            }
            if !self.read(captured_max, &mut piece, &mut last_time) {
                break;
            }
        }
        let missed = self.capture.dropped_frames();
        let received = self.frames.saturating_add(missed);
        pcapng::write_statistics(&mut piece, last_time, received, missed);
        self.send(piece);
    }

    /// Returns the largest number of frames to read for the next piece; `None` once a limit of the
    /// capture is reached.
    fn filter(&self) -> Option<usize> {
        let CaptureParameters { max_frames, max_bytes, .. } = self.parameters;
        let frames = max_frames.map(|max| max.value().saturating_sub(self.frames));
        let is_full = max_bytes.is_some_and(|max| self.bytes >= max.value());
        let frames = frames.unwrap_or(u64::MAX).min(FRAMES_PER_PIECE as u64);
        (frames > 0 && !is_full).then_some(usize::try_from(frames).unwrap_or(FRAMES_PER_PIECE))
    }

    /// Appends at most `captured_max` frames from the ring to the piece. Returns false if the
    /// capture ended.
    fn read(&mut self, captured_max: usize, piece: &mut Vec<u8>, last_time: &mut u64) -> bool {
        let Self { capture, unix_offset_ns, snaplen, is_uplink, bytes, .. } = self;
        let mut handle_frame = |frame: &CapturedFrame| {
            let captured = frame.bytes();
            let captured = captured.get(..*snaplen as usize).unwrap_or(captured);
            *bytes = bytes.saturating_add(captured.len() as u64);
            *last_time = frame.time.as_ns().saturating_add(*unix_offset_ns);
            // pcapng states directions relative to the guest, or to the uplink's device.
            let inbound = (frame.direction == Direction::Ingress) == *is_uplink;
            let packet = Packet {
                time_unix_ns: *last_time,
                direction: if inbound {
                    PacketDirection::Inbound
                } else {
                    PacketDirection::Outbound
                },
                original_len: frame.original_len,
                bytes: captured,
            };
            pcapng::write_packet(piece, &packet);
        };
        match capture.read(POLL_INTERVAL, captured_max, &mut handle_frame) {
            Some(count) => {
                self.frames = self.frames.saturating_add(count as u64);
                true
            }
            None => false,
        }
    }

    /// Sends a piece to the connection and blocks while the channel is full. Returns false if the
    /// connection ended or the capture was cancelled.
    fn send(&mut self, piece: Vec<u8>) -> bool {
        let mut piece = Bytes::from(piece);
        loop {
            match self.pieces.try_send(piece) {
                Ok(()) => return true,
                Err(TrySendError::Closed(_)) => return false,
                Err(TrySendError::Full(returned)) => piece = returned,
            }
            if self.capture.is_cancelled() || *self.ended.borrow() {
                return false;
            }
            std::thread::sleep(ROOM_EVERY);
        }
    }
}
