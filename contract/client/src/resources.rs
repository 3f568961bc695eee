//! Switches, uplinks, teams, NICs: the same verbs for every kind of resource.

use hyper::Method;
use suimon_contract::{ApplyRequest, Name, Operation, Plan, Resource};

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

/// Every method fails with [`ClientError`]; what the daemon refuses is
/// [`ClientError::Refused`] with the resource and key named. With `dry_run`
/// nothing changes and the plan is the result.
impl Client {
    /// All resources of a kind, by name.
    pub async fn list<R: Resource>(&self) -> Result<Vec<R::Status>, ClientError> {
        transport::json(self.socket(), Call::get(collection::<R>())).await
    }

    /// One resource.
    pub async fn show<R: Resource>(&self, name: &Name) -> Result<R::Status, ClientError> {
        transport::json(self.socket(), Call::get(item::<R>(name))).await
    }

    /// Adds a resource.
    pub async fn create<R: Resource>(
        &self,
        resource: &R,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::POST, collection::<R>(), Some(body(resource)?), dry_run).await
    }

    /// Replaces the configuration of a resource.
    pub async fn replace<R: Resource>(
        &self,
        resource: &R,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        let path = item::<R>(resource.name());
        self.change(Method::PUT, path, Some(body(resource)?), dry_run).await
    }

    /// Changes some keys of a resource by a JSON merge patch (RFC 7386).
    pub async fn patch<R: Resource>(
        &self,
        name: &Name,
        patch: &serde_json::Value,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::PATCH, item::<R>(name), Some(body(patch)?), dry_run).await
    }

    /// Deletes a resource.
    pub async fn delete<R: Resource>(
        &self,
        name: &Name,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::DELETE, item::<R>(name), None, dry_run).await
    }

    /// Makes the host be as described.
    pub async fn apply(
        &self,
        request: &ApplyRequest,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::POST, "/1.0/apply".to_owned(), Some(body(request)?), dry_run).await
    }

    async fn change(
        &self,
        method: Method,
        path: String,
        body: Option<Vec<u8>>,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        let is_patch = method == Method::PATCH;
        let path = if dry_run { format!("{path}?dry_run=true") } else { path };
        let mut call = Call::new(method, path);
        call.body = body;
        if is_patch {
            call.content_type = "application/merge-patch+json";
        }
        if dry_run {
            transport::json(self.socket(), call).await.map(Outcome::Planned)
        } else {
            transport::json(self.socket(), call)
                .await
                .map(|operation| Outcome::Started(Box::new(operation)))
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
