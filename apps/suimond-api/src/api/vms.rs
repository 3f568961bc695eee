//! Endpoints of actions on VMs.

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use suimon_contract::{
    ApiError, ErrorBody, ErrorCode, FreezeVmRequest, Operation, ResourceKind, StopVmRequest,
    VmConfig, VmGuest, libvirt_elements,
};
use suimon_node::VmAction;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::{accepted_response, name_in_path};
use crate::api::disk_jobs::parse_request_body;
use crate::api::state::ApiState;
use crate::api::upgrade_request::UpgradeRequest;
use crate::http::{Body, ErrorResponse, Json, PathParameters};

/// Protocol name of an upgraded connection that carries a console's bytes.
const CONSOLE: &str = "suimon-console";

/// Returns the router of VM actions.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(start))
        .routes(routes!(stop))
        .routes(routes!(kill))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(reset))
        .routes(routes!(freeze))
        .routes(routes!(thaw))
        .routes(routes!(guest))
        .routes(routes!(console))
        .routes(routes!(libvirt))
}

/// Starts a VM. The operation ends when its virtual CPUs run.
#[utoipa::path(post, path = "/1.0/vms/{name}/start", tag = "vms",
    operation_id = "start_vm", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn start(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, VmAction::Start).await
}

/// Requests the guest to shut down, and waits for it.
///
/// The operation fails if the guest has not shut down in time; with `force`, the VM is then killed.
#[utoipa::path(post, path = "/1.0/vms/{name}/stop", tag = "vms",
    operation_id = "stop_vm", params(("name" = String, Path)), request_body = Option<StopVmRequest>,
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn stop(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, VmAction::Stop(requested(&body)?)).await
}

/// Kills a VM, like a loss of power.
///
/// Data that the guest has not written to its disks is lost.
#[utoipa::path(post, path = "/1.0/vms/{name}/kill", tag = "vms",
    operation_id = "kill_vm", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn kill(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, VmAction::Kill).await
}

/// Pauses a running VM: stops its virtual CPUs.
#[utoipa::path(post, path = "/1.0/vms/{name}/pause", tag = "vms",
    operation_id = "pause_vm", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn pause(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, VmAction::Pause).await
}

/// Resumes a paused VM.
#[utoipa::path(post, path = "/1.0/vms/{name}/resume", tag = "vms",
    operation_id = "resume_vm", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn resume(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, VmAction::Resume).await
}

/// Resets a VM like a reset button. The QEMU process stays.
#[utoipa::path(post, path = "/1.0/vms/{name}/reset", tag = "vms",
    operation_id = "reset_vm", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn reset(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, VmAction::Reset).await
}

/// Freezes the file systems of the guest through the guest agent, for a limited time.
#[utoipa::path(post, path = "/1.0/vms/{name}/freeze", tag = "vms",
    operation_id = "freeze_vm", params(("name" = String, Path)), request_body = Option<FreezeVmRequest>,
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn freeze(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, VmAction::Freeze(requested(&body)?)).await
}

/// Thaws the file systems of the guest through the guest agent.
#[utoipa::path(post, path = "/1.0/vms/{name}/thaw", tag = "vms",
    operation_id = "thaw_vm", params(("name" = String, Path)),
    responses((status = ACCEPTED, body = Operation), (status = "4XX", body = ErrorBody)))]
async fn thaw(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    begin(&state, &name, VmAction::Thaw).await
}

/// Parses an optional request body; returns the default if it is empty.
fn requested<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ErrorResponse> {
    if body.is_empty() { Ok(T::default()) } else { Ok(parse_request_body(body)?) }
}

async fn begin(state: &ApiState, name: &str, work: VmAction) -> Result<Response, ErrorResponse> {
    let name = name_in_path::<VmConfig>(name)?;
    state.call_blocking(move |node| node.start_vm_action(&name, work)).await.map(accepted_response)
}

/// Returns operating system, host name and IP addresses as reported by the guest agent.
///
/// The request can take some seconds.
#[utoipa::path(get, path = "/1.0/vms/{name}/guest", tag = "vms",
    operation_id = "show_vm_guest", params(("name" = String, Path)),
    responses((status = OK, body = VmGuest), (status = "4XX", body = ErrorBody)))]
async fn guest(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Json<VmGuest>, ErrorResponse> {
    let name = name_in_path::<VmConfig>(&name)?;
    state.call_blocking(move |node| node.vm_guest(&name)).await.map(Json)
}

/// Connects to the serial console of a VM, one client at a time.
///
/// With `Upgrade: suimon-console` the connection then carries the bytes of both directions.
#[utoipa::path(get, path = "/1.0/vms/{name}/console", tag = "vms",
    operation_id = "connect_vm_console",
    params(("name" = String, Path), ("Upgrade" = String, Header, pattern = "^suimon-console$", description = "Protocol of the connection.")),
    responses((status = SWITCHING_PROTOCOLS), (status = "4XX", body = ErrorBody)))]
async fn console(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    mut request: Request,
) -> Result<Response, ErrorResponse> {
    let name = name_in_path::<VmConfig>(&name)?;
    let upgrade = UpgradeRequest::extract(&mut request, CONSOLE)?;
    let line = state.call_blocking(move |node| node.vm_console(&name)).await?;
    Ok(upgrade.accept(line, &state))
}

/// Returns libvirt domain XML for the NICs and disks of a VM.
///
/// The elements are `memoryBacking` and `devices`.
#[utoipa::path(get, path = "/1.0/vms/{name}/libvirt", tag = "vms",
    operation_id = "show_vm_libvirt", params(("name" = String, Path)),
    responses((status = OK, body = String, content_type = "application/xml"),
        (status = "4XX", body = ErrorBody)))]
async fn libvirt(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Response, ErrorResponse> {
    let name = name_in_path::<VmConfig>(&name)?;
    let config = state.call_blocking_infallible(|node| node.config()).await?;
    let Some(vm) = config.vm(name.as_str()) else {
        let text = "no VM of this name exists; `suimon vm list` lists all VMs";
        let subject = format!("{}/{name}", ResourceKind::Vm.noun());
        return Err(ApiError::new(ErrorCode::NotFound, text).with_resource(subject).into());
    };
    let headers = [(header::CONTENT_TYPE, "application/xml")];
    Ok((headers, libvirt_elements(&config, vm)).into_response())
}
