//! Login to the web console.

use hyper::Method;
use suimon_contract::ConsoleLogin;

use crate::transport::{self, ApiRequest};
use crate::{Client, ClientError};

/// Every method fails with [`ClientError`].
impl Client {
    /// Returns a one-time URL that logs in a browser on the host.
    pub async fn new_console_login(&self) -> Result<ConsoleLogin, ClientError> {
        transport::fetch_json(self, ApiRequest::new(Method::POST, "/1.0/console/logins")).await
    }
}
