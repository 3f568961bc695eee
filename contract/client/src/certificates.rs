//! Verification of a daemon's certificate: only configured certificates are trusted.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};

/// Returns a TLS configuration that trusts only the certificates in a PEM file.
///
/// # Errors
/// A message that names the file: it cannot be read, or contains no valid certificate.
pub(crate) fn trusting(authority: &Path) -> Result<ClientConfig, String> {
    let path = authority.display();
    let certificates = CertificateDer::pem_file_iter(authority)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{path} cannot be used: {error}"))?;
    if certificates.is_empty() {
        return Err(format!("{path} cannot be used: the file has no certificate"));
    }
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots
            .add(certificate.clone())
            .map_err(|error| format!("{path} cannot be used: {error}"))?;
    }
    let provider = Arc::new(ring::default_provider());
    let by_authority =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| format!("{path} cannot be used: {error}"))?;
    let verifier = Verifier { by_authority, certificates };
    configured(provider, verifier).map_err(|error| error.to_string())
}

fn configured(provider: Arc<CryptoProvider>, verifier: Verifier) -> Result<ClientConfig, Error> {
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// Verifier that accepts a certificate signed by one of `certificates`, and these certificates
/// themselves: a node may present a self-signed certificate.
#[derive(Debug)]
struct Verifier {
    by_authority: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.by_authority.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // `openssl req -x509` creates a CA certificate, which is not valid as a server
            // certificate. The library has checked the validity period before it returned this
            // error, but not the name.
            Err(error) if may_sign(&error) && self.certificates.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Returns true if a certificate was rejected because it is a CA certificate.
pub(crate) fn may_sign(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = error else {
        return false;
    };
    matches!(other.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}
