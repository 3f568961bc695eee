//! REST API: handlers that call the node.
//!
//! Each endpoint is described at its handler. The OpenAPI document is generated from the router, so
//! it contains every endpoint.

mod bounded_integer;
mod captures;
mod changes;
mod cluster;
mod console;
mod disk_jobs;
mod document;
mod drain;
mod endpoint_description;
mod events;
mod host;
mod incoming_migrations;
mod lab;
mod line_stream;
mod operations;
mod power;
mod qos;
mod queues;
mod resources;
mod sriov;
mod state;
mod store_jobs;
mod switches;
mod upgrade_request;
mod vmq;
mod vms;

use axum::extract::Request;
use axum::{Extension, Router};
use suimon_contract::{
    ApiError, DiskConfig, ErrorCode, NicConfig, NodeConfig, PfConfig, QosPolicyConfig, StoreConfig,
    SwitchConfig, TeamConfig, UplinkConfig, VmConfig,
};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::http::ErrorResponse;

pub(crate) use changes::name_in_path;
pub use state::ApiState;

#[derive(OpenApi)]
#[openapi(info(
    title = "Suimon",
    description = "I/O side of a virtualization host. A request that changes desired state returns \
                   202 with an operation, whose end `wait_operation` awaits; with `dry_run=true` it \
                   returns 200 with the plan. A response that is not a success has an `ErrorBody`: \
                   400 if the body is not JSON or a value has the wrong type, 422 if a value is out \
                   of its range or a rule is violated that JSON Schema cannot express, 409 if the \
                   current state does not permit the request.",
    license(name = "Apache-2.0", identifier = "Apache-2.0")
))]
struct Document;

fn described() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(host::router())
        .merge(resources::router::<SwitchConfig>())
        .merge(switches::router())
        .merge(resources::router::<UplinkConfig>())
        .merge(resources::capture_router::<UplinkConfig>())
        .merge(resources::router::<TeamConfig>())
        .merge(resources::router::<NicConfig>())
        .merge(resources::capture_router::<NicConfig>())
        .merge(resources::router::<StoreConfig>())
        .merge(store_jobs::router())
        .merge(resources::router::<QosPolicyConfig>())
        .merge(resources::router::<DiskConfig>())
        .merge(disk_jobs::router())
        .merge(resources::router::<VmConfig>())
        .merge(vms::router())
        .merge(incoming_migrations::router())
        .merge(drain::router())
        .merge(power::router())
        .merge(cluster::router())
        .merge(console::router())
        .merge(lab::router())
        .merge(resources::router::<PfConfig>())
        .merge(sriov::router())
        .merge(resources::router::<NodeConfig>())
        .merge(qos::router())
        .merge(vmq::router())
        .merge(queues::router())
        .merge(events::router())
        .merge(operations::router())
}

/// Returns the OpenAPI document as JSON text that ends with a line break.
///
/// # Errors
/// The descriptions of the endpoints cannot be serialized, which is a defect of the program.
pub fn openapi_document() -> serde_json::Result<String> {
    let (_, mut document) = described().split_for_parts();
    document::complete(&mut document);
    document.to_pretty_json().map(|text| text + "\n")
}

/// Returns the API as a service.
pub fn router(state: ApiState) -> Router {
    let (router, _) = described().split_for_parts();
    router
        .layer(Extension(host::OpenApiGenerator(openapi_document)))
        .fallback(no_such_endpoint)
        .method_not_allowed_fallback(no_such_method)
        .with_state(state)
}

/// Responds to a path without an endpoint.
async fn no_such_endpoint(request: Request) -> ErrorResponse {
    let text = format!(
        "the path {} does not exist; /1.0/openapi.json lists the paths",
        request.uri().path()
    );
    ApiError::new(ErrorCode::NotFound, text).into()
}

/// Responds to a method that the endpoint does not support. The router adds the header `Allow` with
/// the supported methods (RFC 9110, section 15.5.6).
async fn no_such_method(request: Request) -> ErrorResponse {
    let text = format!(
        "{} does not support {}; /1.0/openapi.json lists the methods",
        request.uri().path(),
        request.method()
    );
    ApiError::new(ErrorCode::MethodNotAllowed, text).into()
}
