//! Service of a connection: activity of requests and responses, and upgrades to byte streams.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::Service;
use suimon_contract::{ApiError, ErrorCode};

use crate::http::ErrorResponse;
use crate::server::client_connection::ClientConnection;
use crate::server::connections::{Activity, ConnectionSlot, UPGRADED_CONNECTIONS_MAX};

/// Service that marks its connection as busy from a request until the end of the response, and adds
/// a [`ClientConnection`] to each request.
pub(super) struct TrackedService<S> {
    pub(super) service: S,
    pub(super) slot: Arc<ConnectionSlot>,
    pub(super) peer: Option<IpAddr>,
}

impl<S> Service<Request<Incoming>> for TrackedService<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<TrackedBody>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let busy = self.slot.begin_activity();
        request.extensions_mut().insert(ClientConnection::new(self.peer, self.slot.clone()));
        let attended =
            |answer: Response<Body>, busy| answer.map(|body| TrackedBody { body, _busy: busy });
        let asks_for_upgrade = request.headers().contains_key(header::UPGRADE);
        if asks_for_upgrade && !self.slot.begin_upgrade() {
            return Box::pin(async move { Ok(attended(too_many_upgrades(), busy)) });
        }
        let answer = self.service.call(request);
        let slot = Arc::clone(&self.slot);
        Box::pin(async move {
            let answer = answer.await;
            if asks_for_upgrade {
                let switches =
                    |answer: &Response<Body>| answer.status() == StatusCode::SWITCHING_PROTOCOLS;
                slot.end_upgrade(answer.as_ref().is_ok_and(switches));
            }
            Ok(attended(answer?, busy))
        })
    }
}

fn too_many_upgrades() -> Response<Body> {
    let text = format!(
        "{UPGRADED_CONNECTIONS_MAX} connections carry consoles and migrations already; end one of them first"
    );
    ErrorResponse::from(ApiError::new(ErrorCode::Conflict, text)).into_response()
}

/// Body of a response, with the activity that keeps the connection busy. The HTTP library drops it
/// when it has passed the whole body to the connection.
pub(super) struct TrackedBody {
    pub(crate) body: Body,
    pub(crate) _busy: Activity,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
