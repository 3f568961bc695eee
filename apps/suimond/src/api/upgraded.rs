//! Connections that carry bytes as they are once their request is answered.

use std::os::fd::OwnedFd;

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use suimon_contract::{ApiError, ErrorCode};

use crate::api::failure::Failure;
use crate::api::state::{ApiState, News};
use crate::line::{carry, local};

/// A request that asks for such a connection by the name of its protocol.
pub(super) struct Asked {
    upgrade: OnUpgrade,
    protocol: &'static str,
}

impl Asked {
    /// Looks whether the request asks for this protocol.
    ///
    /// # Errors
    /// It asks for a document, or for another protocol.
    pub(super) fn of(request: &mut Request, protocol: &'static str) -> Result<Self, Failure> {
        let asked = request.headers().get(header::UPGRADE).is_some_and(|asked| asked == protocol);
        let upgrade = request.extensions_mut().remove::<OnUpgrade>();
        let upgrade = upgrade.filter(|_| asked).ok_or_else(|| {
            let text = format!("this is no document; ask with the header `Upgrade: {protocol}`");
            let error = ApiError::new(ErrorCode::Malformed, text);
            Failure::with_status(StatusCode::UPGRADE_REQUIRED, error)
        })?;
        Ok(Self { upgrade, protocol })
    }

    /// Grants it: what this line says the client reads, and the other way round, until one side
    /// has enough or the daemon ends.
    pub(super) fn grant(self, line: OwnedFd, state: &ApiState) -> Response {
        let headers = [
            (header::CONNECTION, HeaderValue::from_static("upgrade")),
            (header::UPGRADE, HeaderValue::from_static(self.protocol)),
        ];
        tokio::spawn(self.carried(line, state.news.clone()));
        (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
    }

    async fn carried(self, line: OwnedFd, mut news: News) {
        let protocol = self.protocol;
        let (client, line) = match (self.upgrade.await, local(line)) {
            (Ok(client), Ok(line)) => (TokioIo::new(client), line),
            (Err(error), _) => return tracing::debug!(protocol, %error, "a line came to nothing"),
            (_, Err(error)) => return tracing::warn!(protocol, %error, "a line cannot be used"),
        };
        tokio::select! {
            ended = carry(client, line) => {
                if let Err(error) = ended {
                    tracing::debug!(protocol, %error, "a line ended early");
                }
            }
            () = news.wait_end() => {}
        }
    }
}
