//! Endpoints of live migration: requests between the source and destination nodes, and the user's
//! request to the source.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use suimon_client::{MEMORY_PROTOCOL, NBD_PROTOCOL};
use suimon_contract::{
    ApiError, ErrorBody, ErrorCode, IncomingMigration, IncomingMigrationRequest, MigrateVmRequest,
    Name, Operation, VmConfig, parse_request,
};
use suimon_node::PeerStream;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::{accepted_response, name_in_path};
use crate::api::disk_jobs::parse_request_body;
use crate::api::state::ApiState;
use crate::api::upgrade_request::UpgradeRequest;
use crate::http::{Body, ErrorResponse, Json, PathParameters, QueryParameters};

/// Returns the router of migration endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(migrate))
        .routes(routes!(prepare))
        .routes(routes!(show, abandon))
        .routes(routes!(activate))
        .routes(routes!(memory))
        .routes(routes!(disk))
}

/// Parameters of endpoints that support a dry run.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct DryRunParameters {
    /// True to return the planned steps with status 200 and change nothing.
    #[param(required = false)]
    pub(super) dry_run: bool,
}

/// Migrates a running VM to another node.
///
/// The operation ends when the VM runs on the other node, or when the migration failed and the VM
/// continues on this host. The VM, its NICs, disks and QoS policies leave the desired state of this
/// host.
#[utoipa::path(post, path = "/1.0/vms/{name}/migrate", tag = "vms",
    operation_id = "migrate_vm", params(("name" = String, Path), DryRunParameters),
    request_body = MigrateVmRequest,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = suimon_contract::Plan),
        (status = "4XX", body = ErrorBody)))]
async fn migrate(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    QueryParameters(DryRunParameters { dry_run }): QueryParameters<DryRunParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let name = name_in_path::<VmConfig>(&name)?;
    let body: MigrateVmRequest = parse_request_body(&body)?;
    if dry_run {
        let plan = state.call_blocking(move |node| node.check_migration(&name, &body)).await?;
        return Ok(Json(plan).into_response());
    }
    state.call_blocking(move |node| node.migrate_vm(&name, body)).await.map(accepted_response)
}

/// Prepares the migration of a VM to this host. Used between nodes.
#[utoipa::path(post, path = "/1.0/arrivals", tag = "arrivals",
    operation_id = "prepare_arrival", params(DryRunParameters), request_body = IncomingMigrationRequest,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = suimon_contract::Plan),
        (status = "4XX", body = ErrorBody)))]
async fn prepare(
    State(state): State<ApiState>,
    QueryParameters(DryRunParameters { dry_run }): QueryParameters<DryRunParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let arriving: IncomingMigrationRequest = match parse_request(&body) {
        Ok(arriving) => arriving,
        Err(error) => return Err(state.node.unreadable_migration_error(&body, error).into()),
    };
    if dry_run {
        let plan =
            state.call_blocking(move |node| node.check_incoming_migration(&arriving)).await?;
        return Ok(Json(plan).into_response());
    }
    state
        .call_blocking(move |node| node.prepare_incoming_migration(arriving))
        .await
        .map(accepted_response)
}

/// Returns the state of an incoming migration. Used between nodes.
///
/// An unknown migration counts as abandoned.
#[utoipa::path(get, path = "/1.0/arrivals/{id}", tag = "arrivals",
    operation_id = "show_arrival", params(("id" = String, Path)),
    responses((status = OK, body = IncomingMigration), (status = "4XX", body = ErrorBody)))]
async fn show(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<String>,
) -> Result<Json<IncomingMigration>, ErrorResponse> {
    state.call_blocking(move |node| node.incoming_migration(&id)).await.map(Json)
}

/// Abandons an incoming migration unless this host already owns the VM. Used between nodes.
#[utoipa::path(delete, path = "/1.0/arrivals/{id}", tag = "arrivals",
    operation_id = "abandon_arrival", params(("id" = String, Path)),
    responses((status = OK, body = IncomingMigration), (status = "4XX", body = ErrorBody)))]
async fn abandon(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<String>,
) -> Result<Json<IncomingMigration>, ErrorResponse> {
    state.call_blocking(move |node| node.abandon_incoming_migration(&id)).await.map(Json)
}

/// Transfers ownership of the VM to this host. Used between nodes.
///
/// An abandoned migration remains abandoned, which the returned state shows.
#[utoipa::path(post, path = "/1.0/arrivals/{id}/activate", tag = "arrivals",
    operation_id = "activate_arrival", params(("id" = String, Path)),
    responses((status = OK, body = IncomingMigration), (status = "4XX", body = ErrorBody)))]
async fn activate(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<String>,
) -> Result<Json<IncomingMigration>, ErrorResponse> {
    state.call_blocking(move |node| node.activate_incoming_migration(&id)).await.map(Json)
}

/// Receives memory and device state of an incoming VM. Used between nodes.
///
/// With `Upgrade: suimon-memory` the connection then carries the migration stream of QEMU.
#[utoipa::path(get, path = "/1.0/arrivals/{id}/memory", tag = "arrivals",
    operation_id = "connect_arrival_memory",
    params(("id" = String, Path), ("Upgrade" = String, Header, pattern = "^suimon-memory$", description = "Protocol of the connection.")),
    responses((status = SWITCHING_PROTOCOLS), (status = "4XX", body = ErrorBody)))]
async fn memory(
    State(state): State<ApiState>,
    PathParameters(id): PathParameters<String>,
    mut request: Request,
) -> Result<Response, ErrorResponse> {
    let upgrade = UpgradeRequest::extract(&mut request, MEMORY_PROTOCOL)?;
    begin(&state, id, PeerStream::Memory, upgrade).await
}

/// Receives the contents of a disk of an incoming VM. Used between nodes.
///
/// With `Upgrade: suimon-nbd` the connection then carries NBD; this host is the server.
#[utoipa::path(get, path = "/1.0/arrivals/{id}/disks/{disk}", tag = "arrivals",
    operation_id = "connect_arrival_disk",
    params(("id" = String, Path), ("disk" = String, Path),
        ("Upgrade" = String, Header, pattern = "^suimon-nbd$", description = "Protocol of the connection.")),
    responses((status = SWITCHING_PROTOCOLS), (status = "4XX", body = ErrorBody)))]
async fn disk(
    State(state): State<ApiState>,
    PathParameters((id, disk)): PathParameters<(String, String)>,
    mut request: Request,
) -> Result<Response, ErrorResponse> {
    let upgrade = UpgradeRequest::extract(&mut request, NBD_PROTOCOL)?;
    let disk = disk.parse::<Name>().map_err(|error| {
        let text = format!("the arriving VM has no disk of this name: {error}");
        ApiError::new(ErrorCode::NotFound, text).with_resource(format!("disk/{disk}"))
    })?;
    begin(&state, id, PeerStream::Disk(disk), upgrade).await
}

async fn begin(
    state: &ApiState,
    id: String,
    line: PeerStream,
    upgrade: UpgradeRequest,
) -> Result<Response, ErrorResponse> {
    let end = state.call_blocking(move |node| node.open_incoming_connection(&id, &line)).await?;
    Ok(upgrade.accept(end, state))
}
