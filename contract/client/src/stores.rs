//! Requests about stores.

use core::time::Duration;

use hyper::Method;
use serde::de::DeserializeOwned;
use suimon_contract::{ImageRequest, MeasureStoreRequest, Name, Operation, StoreConfig};

use crate::resources::{body, item};
use crate::transport::{self, Call};
use crate::{Client, ClientError};

/// Time limit for the response to a request that reads or changes an image file, which may be
/// large.
const IMAGE_TIMEOUT: Duration = Duration::from_secs(600);

impl Client {
    /// Measures the capacity of a store. The operation's report and the store's status contain the
    /// result.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn measure_store(
        &self,
        store: &Name,
        request: &MeasureStoreRequest,
    ) -> Result<Operation, ClientError> {
        let mut call = Call::new(Method::POST, format!("{}/measure", item::<StoreConfig>(store)));
        call.body = Some(body(request)?);
        transport::json(self, call).await
    }

    /// Inspects or changes an image file of the store. `verb` is `info`, `check`, `repair` or
    /// `relink`, which determines the result type.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn image<T: DeserializeOwned>(
        &self,
        store: &Name,
        verb: &str,
        request: &ImageRequest,
    ) -> Result<T, ClientError> {
        let path = format!("{}/image-{verb}", item::<StoreConfig>(store));
        let mut call = Call::new(Method::POST, path);
        call.timeout = IMAGE_TIMEOUT;
        call.body = Some(body(request)?);
        transport::json(self, call).await
    }
}
