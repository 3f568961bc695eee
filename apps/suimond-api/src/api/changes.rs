//! Changes of desired state: parameters and functions common to all of them.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use suimon_contract::{ApiError, ErrorCode, Name, OldNameUse, Operation, Resource, check_patch};
use suimon_node::{ChangeOptions, Edit, ResourceEdit};
use utoipa::IntoParams;

use crate::api::state::ApiState;
use crate::http::{ErrorResponse, Json};

/// Query parameters of every request that changes resources.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangeParameters {
    /// True to return the planned steps with status 200 and change nothing.
    #[param(required = false)]
    pub dry_run: bool,
    /// True to accept minimums above 90 % of the capacity of a store. For `/1.0/cluster`: also to
    /// join if etcd does not respond, and to leave if it does not respond or if disks are on shared
    /// stores. For `/1.0/stores`: also to end `shared` of a store with disks.
    #[param(required = false)]
    pub force: bool,
    /// True to delete the image files of disks that the change deletes, with their data.
    #[param(required = false)]
    #[serde(rename = "with_file")]
    pub deletes_image_files: bool,
    /// For `PUT` and `PATCH` of a disk: true to create its missing image file, although the disk
    /// has had an image. An existing file is opened and not changed.
    #[param(required = false)]
    pub create_image: bool,
}

/// Checks a change, and carries it out unless it is a dry run.
pub(super) async fn change(
    state: &ApiState,
    edit: Edit,
    parameters: ChangeParameters,
) -> Result<Response, ErrorResponse> {
    change_with_warnings(state, edit, parameters, &[]).await
}

/// As [`change`]; warns about old names in the request, in the response and in the log.
pub(super) async fn change_with_warnings(
    state: &ApiState,
    edit: Edit,
    parameters: ChangeParameters,
    old_names: &[OldNameUse],
) -> Result<Response, ErrorResponse> {
    let warnings = log_old_name_warnings(old_names);
    let ChangeParameters {
        dry_run,
        force,
        deletes_image_files: with_file,
        create_image: creates_image,
    } = parameters;
    let options = ChangeOptions {
        forces_minimums: force,
        deletes_files: with_file,
        creates_image,
        ..ChangeOptions::default()
    };
    if dry_run {
        let mut plan = state.call_blocking(move |node| node.preview(&edit, options)).await?;
        plan.warnings = warnings;
        return Ok(Json(plan).into_response());
    }
    let mut operation = state.call_blocking(move |node| node.submit_with(edit, options)).await?;
    operation.warnings = warnings;
    Ok(accepted_response(operation))
}

/// Returns the warnings about old names in a request, and writes them to the log.
pub(super) fn log_old_name_warnings(old_names: &[OldNameUse]) -> Vec<String> {
    let warnings: Vec<String> = old_names.iter().map(ToString::to_string).collect();
    for warning in &warnings {
        tracing::warn!("API request: {warning}");
    }
    warnings
}

/// Returns a response with status 202, the operation, and its address in `Location`.
pub(super) fn accepted_response(operation: Operation) -> Response {
    let location = format!("/1.0/operations/{}", operation.id);
    (StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(operation)).into_response()
}

/// Parses the resource name in a path.
pub(crate) fn name_in_path<T: Resource>(name: &str) -> Result<Name, ErrorResponse> {
    name.parse().map_err(|error| {
        let kind = T::KIND.noun();
        let text = format!("there is no {kind} of this name: {error}");
        ApiError::new(ErrorCode::NotFound, text).with_resource(format!("{kind}/{name}")).into()
    })
}

/// Returns the edit that creates or replaces the resource with this name.
pub(super) fn put_edit<T: Resource>(
    name: &str,
    body: &[u8],
) -> Result<ResourceEdit<T>, ErrorResponse> {
    let name = name_in_path::<T>(name)?;
    Ok(ResourceEdit::Put(name, suimon_contract::parse_resource(body)?))
}

/// Returns the edit that adds a resource.
pub(super) fn add_edit<T: Resource>(body: &[u8]) -> Result<ResourceEdit<T>, ErrorResponse> {
    Ok(ResourceEdit::Add(suimon_contract::parse_resource(body)?))
}

/// Returns the edit that changes keys of a resource.
pub(super) fn patch_edit<T: Resource>(
    name: &str,
    body: &[u8],
) -> Result<ResourceEdit<T>, ErrorResponse> {
    let name = name_in_path::<T>(name)?;
    check_patch(T::KIND, body)?;
    Ok(ResourceEdit::Patch(name, body.to_vec()))
}

/// Returns the edit that deletes a resource.
pub(super) fn delete_edit<T: Resource>(name: &str) -> Result<ResourceEdit<T>, ErrorResponse> {
    Ok(ResourceEdit::Delete(name_in_path::<T>(name)?))
}
