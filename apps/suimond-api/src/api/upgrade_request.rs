//! HTTP connections upgraded to raw byte streams (RFC 9110, section 7.8).

use std::os::fd::OwnedFd;

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use suimon_contract::{ApiError, ErrorCode};

use crate::api::state::ApiState;
use crate::byte_relay::{copy_bidirectional, register_local_socket};
use crate::http::ErrorResponse;
use crate::notifications::Notifications;

/// Request to upgrade a connection to a protocol.
pub(super) struct UpgradeRequest {
    upgrade: OnUpgrade,
    protocol: &'static str,
}

impl UpgradeRequest {
    /// Extracts the upgrade request for this protocol.
    ///
    /// # Errors
    /// The request contains no upgrade, or one to another protocol.
    pub(super) fn extract(
        request: &mut Request,
        protocol: &'static str,
    ) -> Result<Self, ErrorResponse> {
        let is_requested = request
            .headers()
            .get(header::UPGRADE)
            .is_some_and(|upgrade_header| upgrade_header == protocol);
        let upgrade = request.extensions_mut().remove::<OnUpgrade>();
        let upgrade = upgrade.filter(|_| is_requested).ok_or_else(|| {
            let text = format!(
                "this resource is a connection, not a document; send the header `Upgrade: \
                 {protocol}`"
            );
            let error = ApiError::new(ErrorCode::Malformed, text);
            ErrorResponse::with_status(StatusCode::UPGRADE_REQUIRED, error)
        })?;
        Ok(Self { upgrade, protocol })
    }

    /// Returns the response that accepts the upgrade. Bytes are then copied between the client and
    /// `line` in both directions until one side closes or the daemon ends.
    pub(super) fn accept(self, line: OwnedFd, state: &ApiState) -> Response {
        let headers = [
            (header::CONNECTION, HeaderValue::from_static("upgrade")),
            (header::UPGRADE, HeaderValue::from_static(self.protocol)),
        ];
        tokio::spawn(self.relay(line, state.notifications.clone()));
        (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
    }

    async fn relay(self, line: OwnedFd, mut notifications: Notifications) {
        let protocol = self.protocol;
        let (client, line) = match (self.upgrade.await, register_local_socket(line)) {
            (Ok(client), Ok(line)) => (TokioIo::new(client), line),
            (Err(error), _) => {
                return tracing::debug!(protocol, %error,
                "an upgraded connection failed");
            }
            (_, Err(error)) => {
                return tracing::warn!(protocol, %error,
                "an upgraded connection cannot be used");
            }
        };
        tokio::select! {
            ended = copy_bidirectional(client, line) => {
                if let Err(error) = ended {
                    tracing::debug!(protocol, %error, "an upgraded connection ended early");
                }
            }
            () = notifications.wait_end() => {}
        }
    }
}
