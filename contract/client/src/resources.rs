//! Switches, NICs, disks and others: the same verbs for every kind of resource.

use hyper::Method;
use suimon_contract::{ApplyRequest, Name, Operation, Plan, Resource};

use crate::client::with_query;
use crate::transport::{self, Call};
use crate::{Client, ClientError};

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was only asked what it would do.
    Planned(Plan),
    /// It is under way.
    Started(Box<Operation>),
}

/// How a change is to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeOptions {
    /// Nothing changes, and the plan is the result.
    pub dry_run: bool,
    /// More minimums may be promised than a store can keep.
    pub force: bool,
    /// A disk is deleted with its file.
    pub with_file: bool,
}

impl ChangeOptions {
    /// `path` with what is asked for.
    fn with_path(self, path: &str) -> String {
        let given = |is_given: bool| is_given.then(|| "true".to_owned());
        let pairs = [
            ("dry_run", given(self.dry_run)),
            ("force", given(self.force)),
            ("with_file", given(self.with_file)),
        ];
        with_query(path, &pairs)
    }
}

/// Every method fails with [`ClientError`]; what the daemon refuses is
/// [`ClientError::Refused`] with the resource and key named.
impl Client {
    /// All resources of a kind, by name.
    pub async fn list<R: Resource>(&self) -> Result<Vec<R::Status>, ClientError> {
        transport::json(self, Call::get(collection::<R>())).await
    }

    /// One resource.
    pub async fn show<R: Resource>(&self, name: &Name) -> Result<R::Status, ClientError> {
        transport::json(self, Call::get(item::<R>(name))).await
    }

    /// Adds a resource.
    pub async fn create<R: Resource>(
        &self,
        resource: &R,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::POST, collection::<R>(), Some(body(resource)?), options).await
    }

    /// Replaces the configuration of a resource.
    pub async fn replace<R: Resource>(
        &self,
        resource: &R,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        let path = item::<R>(resource.name());
        self.change(Method::PUT, path, Some(body(resource)?), options).await
    }

    /// Changes some keys of a resource by a JSON merge patch (RFC 7386).
    pub async fn patch<R: Resource>(
        &self,
        name: &Name,
        patch: &serde_json::Value,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::PATCH, item::<R>(name), Some(body(patch)?), options).await
    }

    /// Deletes a resource.
    pub async fn delete<R: Resource>(
        &self,
        name: &Name,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::DELETE, item::<R>(name), None, options).await
    }

    /// Makes the host be as described.
    pub async fn apply(
        &self,
        request: &ApplyRequest,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::POST, "/1.0/apply".to_owned(), Some(body(request)?), options).await
    }

    pub(crate) async fn change(
        &self,
        method: Method,
        path: String,
        body: Option<Vec<u8>>,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        let is_patch = method == Method::PATCH;
        let mut call = Call::new(method, options.with_path(&path));
        call.body = body;
        if is_patch {
            call.content_type = "application/merge-patch+json";
        }
        if options.dry_run {
            transport::json(self, call).await.map(Outcome::Planned)
        } else {
            transport::json(self, call).await.map(|operation| Outcome::Started(Box::new(operation)))
        }
    }
}

fn collection<R: Resource>() -> String {
    format!("/1.0/{}", R::PATH)
}

pub(crate) fn item<R: Resource>(name: &Name) -> String {
    format!("/1.0/{}/{name}", R::PATH)
}

/// Fails only on a path that is not UTF-8.
pub(crate) fn body<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(value).map_err(|error| {
        ClientError::Broken(format!("the request cannot be written as JSON: {error}"))
    })
}
