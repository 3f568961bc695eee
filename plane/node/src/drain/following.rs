//! Mirroring of a drain that another node carries out.
//!
//! The local operation shows the progress of the other node's operation and ends with it. Requests
//! that fail do not end it, because the drain continues meanwhile, even across a restart of the
//! other node's daemon.

use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, Name, Operation, OperationState};

use crate::operations::OperationHandle;
use crate::remote_nodes::peer_error;
use crate::shared::Shared;
use crate::{PeerError, PeerNode};

/// Time without an answer after which a node's drain is not followed any further.
const SILENT_MAX: Duration = Duration::from_secs(600);
/// Pause after a request without an answer.
const PAUSE: Duration = Duration::from_millis(500);

impl Shared {
    /// Mirrors the drain of another node into `operation` until it has ended. Cancellation of
    /// `operation` cancels the drain.
    pub(super) fn mirror_remote_drain(
        &self,
        (name, peer): (&Name, &dyn PeerNode),
        remote_operation: Operation,
        operation: &OperationHandle,
    ) -> Result<(), ApiError> {
        let mut now = remote_operation;
        let mut silent_since = None;
        let mut is_cancelled = false;
        while now.state == OperationState::Running {
            if silent_since.is_none() {
                let step = now.current_step.as_deref().unwrap_or_default();
                operation.report_progress(now.steps_done, now.steps_total, step);
                operation.set_report(now.report.clone());
            }
            if self.drain.stops() {
                let text = format!(
                    "this daemon stops; the drain of node {name} continues: `suimon node list` shows it"
                );
                return Err(ApiError::new(ErrorCode::HostError, text));
            }
            if operation.is_cancelled() && !is_cancelled {
                let cancelled = peer.cancel_operation(now.id);
                cancelled.map_err(|error| not_cancelled(name, error))?;
                is_cancelled = true;
            }
            match next(peer, &now) {
                Ok(next) => (now, silent_since) = (next, None),
                Err(PeerError::Unreachable(reason)) => {
                    let since: Instant = *silent_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= SILENT_MAX {
                        return Err(lost_node_error(name, PeerError::Unreachable(reason)));
                    }
                    let step = format!("node {name} does not respond: {reason}");
                    operation.report_progress(now.steps_done, now.steps_total, &step);
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(lost_node_error(name, error)),
            }
        }
        operation.set_report(now.report);
        now.error.map_or(Ok(()), Err)
    }
}

/// Returns the current state of a drain of another node. If the node's daemon was restarted, the
/// drain continues as another operation, which is found and returned.
fn next(peer: &dyn PeerNode, before: &Operation) -> Result<Operation, PeerError> {
    match peer.operation(before.id) {
        Ok(now) if now.kind == before.kind && now.started_unix_ms == before.started_unix_ms => {
            return Ok(now);
        }
        Ok(_) | Err(PeerError::Rejected(_)) => {}
        Err(error) => return Err(error),
    }
    let drain = peer.host()?.drain;
    if let Some(id) = drain.as_ref().and_then(|drain| drain.operation) {
        return peer.operation(id);
    }
    let (state, error) = match drain {
        Some(drain) if drain.is_drained => (OperationState::Succeeded, None),
        Some(_) => {
            let text = "the drain has ended, and VMs run on the node still; its events name them";
            (OperationState::Failed, Some(ApiError::new(ErrorCode::Conflict, text)))
        }
        None => {
            let text = "the node was undrained; VMs that have left stay on the other nodes";
            (OperationState::Cancelled, Some(ApiError::new(ErrorCode::Cancelled, text)))
        }
    };
    Ok(Operation { state, error, ..before.clone() })
}

fn not_cancelled(name: &Name, error: PeerError) -> ApiError {
    let mut error = peer_error(name, error);
    error.code = ErrorCode::Cancelled;
    error.message = format!(
        "{}; its drain may continue: `suimon node undrain {name}` ends it when the node responds",
        error.message
    );
    error
}

fn lost_node_error(name: &Name, error: PeerError) -> ApiError {
    let mut error = peer_error(name, error);
    error.message = format!(
        "{}; its drain may continue: `suimon node list` shows its state when the node responds",
        error.message
    );
    error
}
