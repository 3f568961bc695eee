//! What can be asked of power.

use hyper::Method;
use suimon_contract::{PowerConfig, PowerStatus};

use crate::resources::body;
use crate::transport::{self, Call};
use crate::{ChangeOptions, Client, ClientError, Outcome};

const PATH: &str = "/1.0/power";

/// Every method fails with [`ClientError`].
impl Client {
    /// What is wanted of CPUs, what of it is so, and energy.
    pub async fn power(&self) -> Result<PowerStatus, ClientError> {
        transport::json(self, Call::get(PATH)).await
    }

    /// Wants this plan, and nothing of one before.
    pub async fn replace_power(
        &self,
        power: &PowerConfig,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::PUT, PATH.to_owned(), Some(body(power)?), options).await
    }

    /// Changes some keys of the plan by a JSON merge patch (RFC 7386).
    pub async fn patch_power(
        &self,
        patch: &serde_json::Value,
        options: ChangeOptions,
    ) -> Result<Outcome, ClientError> {
        self.change(Method::PATCH, PATH.to_owned(), Some(body(patch)?), options).await
    }

    /// Wants no plan; CPUs are as they were before it.
    pub async fn delete_power(&self, options: ChangeOptions) -> Result<Outcome, ClientError> {
        self.change(Method::DELETE, PATH.to_owned(), None, options).await
    }
}
