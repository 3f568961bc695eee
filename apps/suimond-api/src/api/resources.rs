//! Endpoints of resources, common to every kind.
//!
//! To serve a kind of resource, implement [`ServedResource`] and add its [`router`] to the API. The
//! endpoints are described without utoipa's attribute, which does not support type parameters.

use axum::extract::State;
use axum::response::Response;
use axum::routing;
use suimon_contract::{
    ApiError, DiskConfig, Name, NicConfig, NodeConfig, Observed, PfConfig, QosPolicyConfig,
    ResourceKind, StoreConfig, SwitchConfig, TeamConfig, UplinkConfig, VmConfig,
    old_names_in_table,
};
use suimon_node::{Edit, Node, PortKey, ResourceEdit};
use utoipa::openapi::HttpMethod;
use utoipa_axum::router::OpenApiRouter;

use crate::api::captures::{CaptureParameters, begin};
use crate::api::changes::{self, ChangeParameters, change, change_with_warnings};
use crate::api::endpoint_description::{EndpointDescription, routes};
use crate::api::state::ApiState;
use crate::http::{Body, ErrorResponse, Json, PathParameters, QueryParameters};

/// Kind of resource that the API serves.
pub(super) trait ServedResource: Observed<Status: Send> + Send + Sync + 'static {
    /// Converts an edit of one resource to an edit of the host.
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit;

    /// Returns the observed state of every resource of this kind.
    fn observe_all(node: &Node) -> Vec<Self::Status>;

    /// Returns the observed state of one resource.
    ///
    /// # Errors
    /// `not_found` if no resource has this name.
    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError>;
}

/// Kind of resource with a port, whose frames can be captured.
pub(super) trait ServedPort: ServedResource {
    /// Returns the port of the resource with this name.
    fn port(name: Name) -> PortKey;
}

impl ServedResource for SwitchConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::Switch(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.switches()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.switch(name)
    }
}

impl ServedResource for UplinkConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::Uplink(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.uplinks()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.uplink(name)
    }
}

impl ServedPort for UplinkConfig {
    fn port(name: Name) -> PortKey {
        PortKey::Uplink(name)
    }
}

impl ServedResource for TeamConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::Team(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.teams()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.team(name)
    }
}

impl ServedResource for NicConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::Nic(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.nics()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.nic(name)
    }
}

impl ServedResource for StoreConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::Store(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.stores()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.store(name)
    }
}

impl ServedResource for QosPolicyConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::QosPolicy(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.qos_policies()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.qos_policy(name)
    }
}

impl ServedResource for DiskConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::Disk(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.disks()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.disk(name)
    }
}

impl ServedResource for VmConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::Vm(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.vms()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.vm(name)
    }
}

impl ServedResource for PfConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::Pf(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.pfs()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.pf(name)
    }
}

impl ServedResource for NodeConfig {
    fn into_host_edit(edit: ResourceEdit<Self>) -> Edit {
        Edit::Node(edit)
    }

    fn observe_all(node: &Node) -> Vec<Self::Status> {
        node.nodes()
    }

    fn observe(node: &Node, name: &str) -> Result<Self::Status, ApiError> {
        node.peer_node(name)
    }
}

impl ServedPort for NicConfig {
    fn port(name: Name) -> PortKey {
        PortKey::Nic(name)
    }
}

/// Returns the router of a kind of resource.
pub(super) fn router<R: ServedResource>() -> OpenApiRouter<ApiState> {
    let noun = noun(R::KIND);
    let collection = [
        (HttpMethod::Get, list_described::<R>()),
        (
            HttpMethod::Post,
            EndpointDescription::new::<R>("add", &format!("Adds {noun}."))
                .with_change_parameters()
                .with_body::<R>(),
        ),
    ];
    let description =
        format!("Replaces {noun}: keys that the request does not set get their defaults.");
    let patch = format!(
        "Changes keys of {noun} with a JSON merge patch (RFC 7386). Keys that the request does not \
         name are unchanged."
    );
    let delete =
        format!("Deletes {noun}. Fails if another resource refers to it.{}", retained(R::KIND));
    let item = [
        (
            HttpMethod::Get,
            EndpointDescription::new::<R>("show", &format!("Returns keys and state of {noun}."))
                .with_name_parameter()
                .with_status_response::<R>(),
        ),
        (
            HttpMethod::Put,
            EndpointDescription::new::<R>("replace", &description)
                .with_name_parameter()
                .with_change_parameters()
                .with_body::<R>(),
        ),
        (
            HttpMethod::Patch,
            EndpointDescription::new::<R>("change", &patch)
                .with_name_parameter()
                .with_change_parameters()
                .with_merge_patch_body::<R>(),
        ),
        (
            HttpMethod::Delete,
            EndpointDescription::new::<R>("delete", &delete)
                .with_name_parameter()
                .with_change_parameters(),
        ),
    ];
    let of_collection = routing::get(list::<R>).post(create::<R>);
    let of_item = routing::get(show::<R>).put(replace::<R>).patch(modify::<R>).delete(remove::<R>);
    OpenApiRouter::new()
        .routes(routes(format!("/1.0/{}", R::PATH), collection, of_collection))
        .routes(routes(format!("/1.0/{}/{{name}}", R::PATH), item, of_item))
}

/// Returns the router of the capture endpoint of a kind of resource.
pub(super) fn capture_router<R: ServedPort>() -> OpenApiRouter<ApiState> {
    let summary = "Captures the frames of the port as a pcapng stream. The capture ends at a limit of \
                   the request, when the client closes the connection, or when the operation in \
                   the header `Suimon-Operation` is cancelled.";
    let described = EndpointDescription::new::<R>("capture", summary)
        .with_name_parameter()
        .with_capture_response();
    let path = format!("/1.0/{}/{{name}}/capture", R::PATH);
    let handler = routing::get(capture::<R>);
    OpenApiRouter::new().routes(routes(path, [(HttpMethod::Get, described)], handler))
}

/// Returns the noun for a kind of resource with its indefinite article, for descriptions.
const fn noun(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Switch => "a switch",
        ResourceKind::Uplink => "an uplink",
        ResourceKind::Team => "a team",
        ResourceKind::Nic => "a NIC",
        ResourceKind::Store => "a store",
        ResourceKind::QosPolicy => "a QoS policy",
        ResourceKind::Disk => "a disk",
        ResourceKind::Vm => "a VM",
        ResourceKind::Pf => "an SR-IOV adapter (`[[pf]]`)",
        ResourceKind::Node => "another node (`[[node]]`)",
        _ => kind.noun(),
    }
}

/// Returns the plural of the noun for a kind of resource.
const fn plural(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Switch => "switches",
        ResourceKind::Uplink => "uplinks",
        ResourceKind::Team => "teams",
        ResourceKind::Nic => "NICs",
        ResourceKind::Store => "stores",
        ResourceKind::QosPolicy => "QoS policies",
        ResourceKind::Disk => "disks",
        ResourceKind::Vm => "VMs",
        ResourceKind::Pf => "configured SR-IOV adapters (`[[pf]]`)",
        ResourceKind::Node => "other nodes (`[[node]]`)",
        _ => kind.noun(),
    }
}

/// Returns a sentence about the parts of a resource of this kind that remain after its deletion.
const fn retained(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Store => " The files in its directory stay.",
        ResourceKind::Disk => " The image file stays, except with `with_file`.",
        ResourceKind::Vm => " Fails while the VM runs. Its NICs and disks stay.",
        ResourceKind::Pf => " The VFs of the adapter stay as they are.",
        _ => "",
    }
}

fn list_described<R: ServedResource>() -> EndpointDescription {
    let summary = format!("Lists all {} with their state.", plural(R::KIND));
    let mut described = EndpointDescription::new::<R>("list", &summary).with_list_response::<R>();
    described.set_operation_id(format!("list_{}", R::PATH.replace('-', "_")));
    described
}

async fn list<R: ServedResource>(
    State(state): State<ApiState>,
) -> Result<Json<Vec<R::Status>>, ErrorResponse> {
    state.call_blocking_infallible(|node| R::observe_all(node)).await.map(Json)
}

async fn show<R: ServedResource>(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
) -> Result<Json<R::Status>, ErrorResponse> {
    state.call_blocking(move |node| R::observe(node, &name)).await.map(Json)
}

async fn create<R: ServedResource>(
    State(state): State<ApiState>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let edit = R::into_host_edit(changes::add_edit(&body)?);
    change_with_warnings(&state, edit, parameters, &old_names_in_table(R::KIND, &body)).await
}

async fn replace<R: ServedResource>(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let edit = R::into_host_edit(changes::put_edit(&name, &body)?);
    change_with_warnings(&state, edit, parameters, &old_names_in_table(R::KIND, &body)).await
}

async fn modify<R: ServedResource>(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
    Body(body): Body,
) -> Result<Response, ErrorResponse> {
    let edit = R::into_host_edit(changes::patch_edit(&name, &body)?);
    change_with_warnings(&state, edit, parameters, &old_names_in_table(R::KIND, &body)).await
}

async fn remove<R: ServedResource>(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    QueryParameters(parameters): QueryParameters<ChangeParameters>,
) -> Result<Response, ErrorResponse> {
    change(&state, R::into_host_edit(changes::delete_edit(&name)?), parameters).await
}

async fn capture<R: ServedPort>(
    State(state): State<ApiState>,
    PathParameters(name): PathParameters<String>,
    QueryParameters(parameters): QueryParameters<CaptureParameters>,
) -> Result<Response, ErrorResponse> {
    let name = changes::name_in_path::<R>(&name)?;
    begin(&state, R::port(name), parameters).await
}
