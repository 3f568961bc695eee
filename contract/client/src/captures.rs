//! Packet captures on ports.

use suimon_contract::{Name, NicConfig, Resource, UplinkConfig};

use crate::client::Client;
use crate::query::with_query;
use crate::resources::resource_path;
use crate::transport::ApiRequest;
use crate::{CaptureStream, ClientError, transport};

/// Kind of resource on which frames can be captured.
pub trait CapturablePort: Resource {}

impl CapturablePort for NicConfig {}

impl CapturablePort for UplinkConfig {}

/// Limits of a capture. Without any limit it continues until it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Bytes captured of each frame.
    pub snaplen: Option<u32>,
    /// Number of frames after which the capture ends.
    pub frames_max: Option<u64>,
    /// Number of bytes after which the capture ends.
    pub bytes_max: Option<u64>,
}

impl Client {
    /// Starts a capture of a port. It ends when the returned value is dropped, a limit is reached
    /// or its operation is cancelled.
    pub async fn capture<R: CapturablePort>(
        &self,
        port: &Name,
        options: CaptureOptions,
    ) -> Result<CaptureStream, ClientError> {
        let path = with_query(
            &format!("{}/capture", resource_path::<R>(port)),
            &[
                ("snaplen", options.snaplen.map(|n| n.to_string())),
                ("max_frames", options.frames_max.map(|n| n.to_string())),
                ("max_bytes", options.bytes_max.map(|n| n.to_string())),
            ],
        );
        transport::send(self, ApiRequest::get(path)).await.map(CaptureStream::new)
    }
}
