//! Requests about operations: long-running changes that the daemon executes.

use core::time::Duration;

use hyper::Method;
use suimon_contract::Operation;

use crate::client::Client;
use crate::transport::ApiRequest;
use crate::{ClientError, JsonLineStream, transport};

impl Client {
    /// Returns all operations that the daemon retains.
    pub async fn operations(&self) -> Result<Vec<Operation>, ClientError> {
        self.get_json("/1.0/operations").await
    }

    /// Returns one operation with its progress.
    pub async fn operation(&self, id: u64) -> Result<Operation, ClientError> {
        self.get_json(format!("/1.0/operations/{id}")).await
    }

    /// Returns an operation when it has ended, or after `timeout` at the latest.
    pub async fn wait_operation(
        &self,
        id: u64,
        timeout: Duration,
    ) -> Result<Operation, ClientError> {
        let mut call =
            ApiRequest::get(format!("/1.0/operations/{id}/wait?timeout_s={}", timeout.as_secs()));
        call.server_wait = timeout;
        transport::fetch_json(self, call).await
    }

    /// Streams the progress of an operation until it has ended.
    pub async fn follow_operation(
        &self,
        id: u64,
    ) -> Result<JsonLineStream<Operation>, ClientError> {
        let path = format!("/1.0/operations/{id}/follow");
        let answer = transport::send(self, ApiRequest::get(path.clone())).await?;
        Ok(JsonLineStream::new(path, answer))
    }

    /// Requests cancellation of an operation. The returned state shows the result.
    pub async fn cancel_operation(&self, id: u64) -> Result<Operation, ClientError> {
        let call = ApiRequest::new(Method::DELETE, format!("/1.0/operations/{id}"));
        transport::fetch_json(self, call).await
    }
}
