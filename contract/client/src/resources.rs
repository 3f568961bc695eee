//! Switches, uplinks and NICs: the same verbs for each.

use hyper::Method;
use serde::de::DeserializeOwned;
use suimon_contract::{
    ApplyRequest, Name, NicConfig, NicStatus, Operation, Plan, Resource, SwitchConfig,
    SwitchStatus, UplinkConfig, UplinkStatus,
};

use crate::transport::{self, Call};
use crate::{Client, ClientError};

/// A kind of resource with a collection in the API.
pub trait Collection: Resource {
    /// What is observed of it.
    type Status: DeserializeOwned;

    /// Path of the collection below the root, like `nics`.
    const PATH: &'static str;
}

impl Collection for SwitchConfig {
    type Status = SwitchStatus;
    const PATH: &'static str = "switches";
}

impl Collection for UplinkConfig {
    type Status = UplinkStatus;
    const PATH: &'static str = "uplinks";
}

impl Collection for NicConfig {
    type Status = NicStatus;
    const PATH: &'static str = "nics";
}

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
    pub async fn list<C: Collection>(&self) -> Result<Vec<C::Status>, ClientError> {
        transport::json(self.socket(), Call::get(collection::<C>())).await
    }

    /// One resource.
    pub async fn show<C: Collection>(&self, name: &Name) -> Result<C::Status, ClientError> {
        transport::json(self.socket(), Call::get(item::<C>(name))).await
    }

    /// Adds a resource.
    pub async fn create<C: Collection>(
        &self,
        resource: &C,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::POST, collection::<C>(), Some(body(resource)?), dry_run).await
    }

    /// Replaces the configuration of a resource.
    pub async fn replace<C: Collection>(
        &self,
        resource: &C,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        let path = item::<C>(resource.name());
        self.change(Method::PUT, path, Some(body(resource)?), dry_run).await
    }

    /// Changes some keys of a resource by a JSON merge patch (RFC 7386).
    pub async fn patch<C: Collection>(
        &self,
        name: &Name,
        patch: &serde_json::Value,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::PATCH, item::<C>(name), Some(body(patch)?), dry_run).await
    }

    /// Deletes a resource.
    pub async fn delete<C: Collection>(
        &self,
        name: &Name,
        dry_run: bool,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::DELETE, item::<C>(name), None, dry_run).await
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

fn collection<C: Collection>() -> String {
    format!("/1.0/{}", C::PATH)
}

fn item<C: Collection>(name: &Name) -> String {
    format!("/1.0/{}/{name}", C::PATH)
}

/// Fails only on a path that is not UTF-8.
pub(crate) fn body<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(value).map_err(|error| {
        ClientError::Broken(format!("the request cannot be written as JSON: {error}"))
    })
}
