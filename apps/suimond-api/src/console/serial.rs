//! Serial console of a VM in the page: a WebSocket (RFC 6455) with the raw bytes of both directions
//! in binary messages. The first message of the page is a text with the secret of its session. An
//! error, or the reason for the end, is sent as one text message in the REST API's error format
//! before the connection closes.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use suimon_contract::{ApiError, ErrorCode, VmConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{interval, timeout};

use super::access_check;
use super::logins::Credentials;
use crate::api::name_in_path;
use crate::byte_relay::{LocalSocket, register_local_socket};
use crate::console::listener::UNAUTHENTICATED_CONNECTIONS_MAX;
use crate::console::state::ConsoleState;
use crate::http::ErrorResponse;

/// Buffer size for bytes from the VM.
const SHOWN_BYTES: usize = 16 << 10;
/// Largest message from the page.
const TYPED_BYTES_MAX: usize = 64 << 10;
/// Time limit for the page or guest to accept data, after which the connection ends.
const WRITE_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for the message with the secret.
pub(super) const SECRET_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of checks that the session is valid.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Opens a VM's serial console for a page of this console only. Browsers send the session's cookie
/// with WebSockets of other pages on this machine, too. Nothing is served before the page has sent
/// the secret of its session.
pub(super) async fn open(
    State(state): State<ConsoleState>,
    Path(name): Path<String>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, ErrorResponse> {
    if !access_check::is_same_origin(&headers) {
        let text = "the serial console is available on the console's own page only; use `suimon \
                    vm console` elsewhere";
        let error = ApiError::new(ErrorCode::PermissionDenied, text);
        return Err(ErrorResponse::with_status(StatusCode::FORBIDDEN, error));
    }
    let slot = state.console.unauthenticated_permits.clone().try_acquire_owned().map_err(|_| {
        let text = format!(
            "{UNAUTHENTICATED_CONNECTIONS_MAX} connections have not sent the secret of their session; try again \
             in {} s",
            SECRET_TIMEOUT.as_secs()
        );
        ApiError::new(ErrorCode::Conflict, text)
    })?;
    let session = access_check::find_cookie(&headers, &state.console.cookie_name())
        .unwrap_or_default()
        .to_owned();
    let upgrade = upgrade.max_message_size(TYPED_BYTES_MAX).max_frame_size(TYPED_BYTES_MAX);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let (mut page, mut typed) = socket.split();
        let has_secret = has_secret(&state, &session, &mut typed).await;
        drop(slot);
        let failure = if has_secret {
            match line(&state, &name).await {
                Ok(line) => copy(&state, &session, line, (&mut page, typed)).await,
                Err(failure) => Some(failure),
            }
        } else {
            let text = "send the secret of the session as the first message, within 5 s; the login \
                        returned it";
            Some(ApiError::new(ErrorCode::Unauthorized, text).into())
        };
        if let Some(failure) = failure {
            let text = serde_json::to_string(&failure.into_body()).unwrap_or_default();
            let _ = timeout(WRITE_LIMIT, page.send(Message::text(text))).await;
        }
        let _ = timeout(WRITE_LIMIT, page.close()).await;
    }))
}

/// Returns true if the first message, apart from pings, is the secret of the session.
async fn has_secret(
    state: &ConsoleState,
    cookie: &str,
    typed: &mut SplitStream<WebSocket>,
) -> bool {
    let first = async {
        loop {
            match typed.next().await {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Text(secret))) => return Some(secret),
                _ => return None,
            }
        }
    };
    let Ok(Some(secret)) = timeout(SECRET_TIMEOUT, first).await else { return false };
    let credentials = Credentials { cookie, secret: secret.as_str() };
    state.console.logins().authenticate_and_extend(Instant::now(), &credentials)
}

async fn line(state: &ConsoleState, name: &str) -> Result<LocalSocket, ErrorResponse> {
    let name = name_in_path::<VmConfig>(name)?;
    let subject = format!("vm/{name}");
    let line = state.api.call_blocking(move |node| node.vm_console(&name)).await?;
    register_local_socket(line).map_err(|error| {
        let text = format!("the serial console cannot be opened: {error}; retry");
        ApiError::new(ErrorCode::HostError, text).with_resource(subject).into()
    })
}

/// Copies bytes until one side closes, the session ends or the daemon ends. Returns the reason to
/// report.
async fn copy(
    state: &ConsoleState,
    session: &str,
    line: LocalSocket,
    (page, typed): (&mut SplitSink<WebSocket, Message>, SplitStream<WebSocket>),
) -> Option<ErrorResponse> {
    let (reads, writes) = tokio::io::split(line);
    let mut notifications = state.api.notifications.clone();
    tokio::select! {
        () = copy_output(reads, page) => {
            Some(conflict_error(
                "the VM closed its serial console because it ended or was restarted; open it \
                 again"))
        }
        () = copy_input(typed, writes, || state.console.logins().extend_session(Instant::now(), session)) => None,
        () = no_session(state, session) => {
            Some(ApiError::new(ErrorCode::Unauthorized, access_check::LOGIN_HINT).into())
        }
        () = notifications.wait_end() => Some(conflict_error(
            "the daemon is stopping; open the serial console again when it runs")),
    }
}

fn conflict_error(text: &str) -> ErrorResponse {
    ApiError::new(ErrorCode::Conflict, text).into()
}

/// Copies output of the VM to the page until the VM closes its end or the page accepts no more
/// data.
async fn copy_output(mut output: impl AsyncRead + Unpin, page: &mut SplitSink<WebSocket, Message>) {
    let mut buffer = vec![0; SHOWN_BYTES];
    loop {
        let count = output.read(&mut buffer).await.unwrap_or_default();
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { return };
        let message = Message::Binary(Bytes::copy_from_slice(bytes));
        if !matches!(timeout(WRITE_LIMIT, page.send(message)).await, Ok(Ok(()))) {
            return;
        }
    }
}

/// Copies input of the page to the VM until the page closes the connection, the VM accepts no more
/// data, or `is_permitted` returns false.
async fn copy_input(
    mut typed: SplitStream<WebSocket>,
    mut input: impl AsyncWrite + Unpin,
    is_permitted: impl Fn() -> bool,
) {
    while let Some(Ok(message)) = typed.next().await {
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Close(_) => return,
            // The page sends no text; pings are answered by the library.
            _ => continue,
        };
        if !is_permitted()
            || !matches!(timeout(WRITE_LIMIT, input.write_all(&bytes)).await, Ok(Ok(())))
        {
            return;
        }
    }
}

async fn no_session(state: &ConsoleState, session: &str) {
    let mut checks = interval(CHECK_INTERVAL);
    while state.console.logins().is_valid_session_cookie(Instant::now(), session) {
        checks.tick().await;
    }
}
