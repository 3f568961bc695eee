//! Endpoints of the cluster that the host is a node of.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use suimon_contract::{
    ClusterConfig, ClusterDisk, ClusterStatus, ErrorBody, Operation, Plan, ResourceKind,
    check_patch, old_names_in_table, parse_cluster,
};
use suimon_node::{ClusterEdit, Edit};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::changes::{ChangeParameters, change, change_with_warnings};
use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, Json, PathParameters, QueryParameters};

/// Returns the router of cluster endpoints.
pub(super) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(show, init, put, patch, delete))
        .routes(routes!(flows))
        .routes(routes!(remove))
}

/// Returns nodes of the cluster, the leader of each shared store, and the IOPS of this host.
#[utoipa::path(get, path = "/1.0/cluster", tag = "cluster", operation_id = "show_cluster",
    responses((status = OK, body = ClusterStatus)))]
async fn show(State(state): State<ApiState>) -> Result<Json<ClusterStatus>, ErrorResponse> {
    state.call_blocking_infallible(|node| node.cluster()).await.map(Json)
}

/// Creates a cluster with this host as its first node. Fails if the cluster exists.
#[utoipa::path(post, path = "/1.0/cluster", tag = "cluster", operation_id = "init_cluster",
    params(ChangeParameters), request_body = ClusterConfig,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn init(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let cluster = parse_cluster(&body)?;
    let edit = Edit::Cluster(ClusterEdit::Init(cluster));
    change_with_warnings(
        &state,
        edit,
        parameters,
        &old_names_in_table(ResourceKind::Cluster, &body),
    )
    .await
}

/// Joins a cluster and creates it if it does not exist.
///
/// Fails if etcd does not respond; with `force`, the host joins when etcd responds.
#[utoipa::path(put, path = "/1.0/cluster", tag = "cluster", operation_id = "replace_cluster",
    params(ChangeParameters), request_body = ClusterConfig,
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn put(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let cluster = parse_cluster(&body)?;
    let edit = Edit::Cluster(ClusterEdit::Put(cluster));
    change_with_warnings(
        &state,
        edit,
        parameters,
        &old_names_in_table(ResourceKind::Cluster, &body),
    )
    .await
}

/// Changes the connection to etcd with a JSON merge patch (RFC 7386).
///
/// `name` and `node` cannot change.
#[utoipa::path(patch, path = "/1.0/cluster", tag = "cluster", operation_id = "change_cluster",
    params(ChangeParameters),
    request_body(content = ref("#/components/schemas/ClusterConfigPatch"), content_type = "application/merge-patch+json"),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn patch(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    check_patch(ResourceKind::Cluster, &body)?;
    let edit = Edit::Cluster(ClusterEdit::Patch(body.to_vec()));
    change_with_warnings(
        &state,
        edit,
        parameters,
        &old_names_in_table(ResourceKind::Cluster, &body),
    )
    .await
}

/// Releases the reservations of this host and leaves the cluster.
///
/// Fails while disks are on shared stores or etcd does not respond, except with `force`.
#[utoipa::path(delete, path = "/1.0/cluster", tag = "cluster", operation_id = "leave_cluster",
    params(ChangeParameters),
    responses((status = ACCEPTED, body = Operation), (status = OK, body = Plan),
        (status = "4XX", body = ErrorBody)))]
async fn delete(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
) -> Result<Response, ErrorResponse> {
    change(&state, Edit::Cluster(ClusterEdit::Delete), parameters).await
}

/// Lists guaranteed, demanded and delivered IOPS of disks on shared stores of all nodes.
///
/// Per node, the 8 disks with the most IOPS beyond their guarantee and the 8 disks furthest below
/// it are listed, the latter with the disks that displace them.
#[utoipa::path(get, path = "/1.0/cluster/flows", tag = "cluster", operation_id = "list_cluster_flows",
    responses((status = OK, body = Vec<ClusterDisk>), (status = "4XX", body = ErrorBody)))]
async fn flows(State(state): State<ApiState>) -> Result<Json<Vec<ClusterDisk>>, ErrorResponse> {
    state.call_blocking(|node| node.cluster_disks()).await.map(Json)
}

/// Removes a permanently failed node from the cluster and releases its reservations.
///
/// Fails while the node is alive.
#[utoipa::path(delete, path = "/1.0/cluster/members/{name}", tag = "cluster",
    operation_id = "remove_cluster_node",
    params(("name" = String, Path, description = "Name of the node in the cluster.")),
    responses((status = NO_CONTENT), (status = "4XX", body = ErrorBody)))]
async fn remove(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<StatusCode, ErrorResponse> {
    state.call_blocking(move |node| node.remove_cluster_node(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}
