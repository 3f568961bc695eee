//! gRPC connection to one etcd member.

use std::time::Duration;

use etcd_client::{Certificate, Error, Identity, TlsOptions};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use suimon_lookups::Lookups;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::spec::EtcdTls;

/// Time limit for connecting to one address of a member. Resolution of its name, connection and TLS
/// handshake together may take twice as long.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of keep-alive messages on an idle connection.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Creates a channel to the member with the URL `member`. The channel connects at its first use,
/// and again after a failure. Must be called in a tokio task. `lookups` resolves names.
///
/// # Errors
/// The URL is invalid, or `tls` is set for a URL that is not `https`.
pub(crate) fn lazy_channel(
    member: &str,
    tls: Option<&EtcdTls>,
    lookups: &Lookups,
) -> Result<Channel, Error> {
    let mut endpoint = Endpoint::from_shared(member.to_owned())?
        .connect_timeout(CONNECT_TIMEOUT * 2)
        .http2_keep_alive_interval(SIGN_OF_LIFE)
        .keep_alive_timeout(SIGN_OF_LIFE * 2)
        .keep_alive_while_idle(true);
    let is_https = endpoint.uri().scheme_str() == Some("https");
    match tls {
        // The connection would not be encrypted.
        Some(_) if !is_https => {
            let text = "certificates apply only to https; set an https URL, or no certificates";
            return Err(Error::InvalidArgs(text.to_owned()));
        }
        tls if is_https => endpoint = endpoint.tls_config(tls_options(tls))?,
        _ => {}
    }
    let lookups = lookups.clone();
    let resolver = service_fn(move |name: Name| {
        let lookups = lookups.clone();
        async move { lookups.resolve(name.as_str()).await.map(Vec::into_iter) }
    });
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    Ok(endpoint.connect_with_connector_lazy(connector))
}

fn tls_options(tls: Option<&EtcdTls>) -> TlsOptions {
    let Some(tls) = tls else { return TlsOptions::new() };
    let options = TlsOptions::new().ca_certificate(Certificate::from_pem(&tls.ca_certificates));
    match &tls.identity {
        Some((certificate, key)) => options.identity(Identity::from_pem(certificate, key)),
        None => options,
    }
}
