//! Requests about power management.

use hyper::Method;
use suimon_contract::{PowerConfig, PowerStatus};

use crate::resources::json_body;
use crate::transport::{self, ApiRequest};
use crate::{ChangeOptions, ChangeOutcome, Client, ClientError};

const PATH: &str = "/1.0/power";

/// Every method fails with [`ClientError`].
impl Client {
    /// Returns the desired and actual settings of CPUs, and energy counters.
    pub async fn power(&self) -> Result<PowerStatus, ClientError> {
        transport::fetch_json(self, ApiRequest::get(PATH)).await
    }

    /// Sets the power plan, replacing all settings of an earlier one.
    pub async fn replace_power(
        &self,
        power: &PowerConfig,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::PUT, PATH.to_owned(), Some(json_body(power)?), options).await
    }

    /// Changes some keys of the power plan by a JSON merge patch (RFC 7386).
    pub async fn patch_power(
        &self,
        patch: &serde_json::Value,
        options: ChangeOptions,
    ) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::PATCH, PATH.to_owned(), Some(json_body(patch)?), options).await
    }

    /// Removes the power plan. The daemon restores the earlier CPU settings.
    pub async fn delete_power(&self, options: ChangeOptions) -> Result<ChangeOutcome, ClientError> {
        self.change(Method::DELETE, PATH.to_owned(), None, options).await
    }
}
