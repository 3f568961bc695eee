//! What can be asked of a store.

use hyper::Method;
use suimon_contract::{MeasureStoreRequest, Name, Operation, StoreConfig};

use crate::resources::{body, item};
use crate::transport::{self, Call};
use crate::{Client, ClientError};

impl Client {
    /// Measures what the store can do. What was found is in the operation's report and in the
    /// store's status.
    ///
    /// # Errors
    /// As [`ClientError`] has them.
    pub async fn measure_store(
        &self,
        store: &Name,
        request: &MeasureStoreRequest,
    ) -> Result<Operation, ClientError> {
        let mut call = Call::new(Method::POST, format!("{}/measure", item::<StoreConfig>(store)));
        call.body = Some(body(request)?);
        transport::json(self, call).await
    }
}
