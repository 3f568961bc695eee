//! Requests about operations: long-running changes that the daemon executes.

use core::time::Duration;

use hyper::Method;
use suimon_contract::Operation;

use crate::client::Client;
use crate::transport::Call;
use crate::{ClientError, Follow, transport};

impl Client {
    /// Returns all operations that the daemon retains.
    pub async fn operations(&self) -> Result<Vec<Operation>, ClientError> {
        self.json("/1.0/operations").await
    }

    /// Returns one operation with its progress.
    pub async fn operation(&self, id: u64) -> Result<Operation, ClientError> {
        self.json(format!("/1.0/operations/{id}")).await
    }

    /// Returns an operation when it has ended, or after `timeout` at the latest.
    pub async fn wait_operation(
        &self,
        id: u64,
        timeout: Duration,
    ) -> Result<Operation, ClientError> {
        let mut call =
            Call::get(format!("/1.0/operations/{id}/wait?timeout_s={}", timeout.as_secs()));
        call.timeout = timeout;
        transport::json(self, call).await
    }

    /// Streams the progress of an operation until it has ended.
    pub async fn follow_operation(&self, id: u64) -> Result<Follow<Operation>, ClientError> {
        let path = format!("/1.0/operations/{id}/follow");
        let answer = transport::send(self, Call::get(path.clone())).await?;
        Ok(Follow::new(path, answer))
    }

    /// Requests cancellation of an operation. The returned state shows the result.
    pub async fn cancel_operation(&self, id: u64) -> Result<Operation, ClientError> {
        let call = Call::new(Method::DELETE, format!("/1.0/operations/{id}"));
        transport::json(self, call).await
    }
}
