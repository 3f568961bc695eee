//! Requests about resources: switches, NICs, disks and others. Every kind of resource has the same
//! methods.

use hyper::Method;
use suimon_contract::{ApplyRequest, Name, Observed, Operation, Plan, Resource};

use crate::query::with_query;
use crate::transport::{self, ApiRequest};
use crate::{Client, ClientError};

/// Result of a request to change resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// Plan of a dry run.
    Planned(Plan),
    /// Operation that carries out the change.
    Started(Box<Operation>),
}

/// Options of a request to change resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeOptions {
    /// Return the plan without changing anything.
    pub dry_run: bool,
    /// Accept more guaranteed IOPS than a store can deliver.
    pub force: bool,
    /// Delete the file of a deleted disk too.
    pub deletes_image_files: bool,
    /// Create the missing image file of a disk that has had an image.
    pub create_image: bool,
}

impl ChangeOptions {
    /// Returns `path` with the options as query parameters.
    fn with_path(self, path: &str) -> String {
        let flag = |is_given: bool| is_given.then(|| "true".to_owned());
        let pairs = [
            ("dry_run", flag(self.dry_run)),
            ("force", flag(self.force)),
            ("with_file", flag(self.deletes_image_files)),
            ("create_image", flag(self.create_image)),
        ];
        with_query(path, &pairs)
    }
}

/// Methods that each fail with [`ClientError`]. A rejected request yields [`ClientError::Refused`]
/// with the resource and key.
impl Client {
    /// Returns all resources of a kind, by name.
    pub async fn list<R: Observed>(&self) -> Result<Vec<R::Status>, ClientError> {
        transport::fetch_json(self, ApiRequest::get(collection::<R>())).await
    }

    /// Returns the status of one resource.
    pub async fn show<R: Observed>(&self, name: &Name) -> Result<R::Status, ClientError> {
        transport::fetch_json(self, ApiRequest::get(resource_path::<R>(name))).await
    }

    /// Creates a resource with this configuration.
    pub async fn create<R: Resource>(
        &self,
        resource: &R,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::POST, collection::<R>(), Some(json_body(resource)?), options).await
    }

    /// Replaces the configuration of a resource.
    pub async fn replace<R: Resource>(
        &self,
        resource: &R,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        let path = resource_path::<R>(resource.name());
        self.change(Method::PUT, path, Some(json_body(resource)?), options).await
    }

    /// Changes some keys of a resource by a JSON merge patch (RFC 7386).
    pub async fn patch<R: Resource>(
        &self,
        name: &Name,
        patch: &serde_json::Value,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::PATCH, resource_path::<R>(name), Some(json_body(patch)?), options).await
    }

    /// Deletes the resource with this name.
    pub async fn delete<R: Resource>(
        &self,
        name: &Name,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::DELETE, resource_path::<R>(name), None, options).await
    }

    /// Applies a description of the host's desired state: creates, changes and deletes resources as
    /// necessary.
    pub async fn apply(
        &self,
        request: &ApplyRequest,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::POST, "/1.0/apply".to_owned(), Some(json_body(request)?), options).await
    }

    pub(crate) async fn change(
        &self,
        method: Method,
        path: String,
        body: Option<Vec<u8>>,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        let is_patch = method == Method::PATCH;
        let mut call = ApiRequest::new(method, options.with_path(&path));
        call.body = body;
        if is_patch {
            call.content_type = "application/merge-patch+json";
        }
        if options.dry_run {
            transport::fetch_json(self, call).await.map(ChangeOutcome::Planned)
        } else {
            transport::fetch_json(self, call)
                .await
                .map(|operation| ChangeOutcome::Started(Box::new(operation)))
        }
    }
}

fn collection<R: Resource>() -> String {
    format!("/1.0/{}", R::PATH)
}

pub(crate) fn resource_path<R: Resource>(name: &Name) -> String {
    format!("/1.0/{}/{name}", R::PATH)
}

/// Serializes a request body as JSON.
///
/// # Errors
/// A path in the value is not UTF-8.
pub(crate) fn json_body<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(value).map_err(|error| {
        ClientError::ConnectionLost(format!("the request cannot be converted to JSON: {error}"))
    })
}
