//! Requests about stores.

use core::time::Duration;

use hyper::Method;
use serde::de::DeserializeOwned;
use suimon_contract::{ImageRequest, MeasureStoreRequest, Name, Operation, StoreConfig};

use crate::resources::{json_body, resource_path};
use crate::transport::{self, ApiRequest};
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
        let mut call = ApiRequest::new(
            Method::POST,
            format!("{}/measure", resource_path::<StoreConfig>(store)),
        );
        call.body = Some(json_body(request)?);
        transport::fetch_json(self, call).await
    }

    /// Inspects or changes an image file of the store. `verb` is `info`, `check`, `repair` or
    /// `relink`, which determines the result type.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn request_image_operation<T: DeserializeOwned>(
        &self,
        store: &Name,
        verb: &str,
        request: &ImageRequest,
    ) -> Result<T, ClientError> {
        let path = format!("{}/image-{verb}", resource_path::<StoreConfig>(store));
        let mut call = ApiRequest::new(Method::POST, path);
        call.server_wait = IMAGE_TIMEOUT;
        call.body = Some(json_body(request)?);
        transport::fetch_json(self, call).await
    }
}
