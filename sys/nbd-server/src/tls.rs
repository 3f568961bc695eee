//! TLS of a TCP server: its certificate, and the verification of client certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use suimon_secret_file::{SecretFileError, open_secret};

/// Reason why TLS cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum NbdTlsError {
    /// A file with a certificate or key cannot be used.
    #[error("{}: {detail}", path.display())]
    File {
        /// Expected contents of the file.
        file: TlsFile,
        /// Path of the unusable file.
        path: PathBuf,
        /// Reason why it cannot be used.
        detail: String,
    },
    /// The private key cannot be read, or all users may access it.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// Certificate and key do not match, or the library rejects them.
    #[error("the certificate does not match its key: {0}")]
    Identity(rustls::Error),
    /// The CA certificates cannot be used to verify clients.
    #[error("the verification of client certificates cannot be set up: {0}")]
    ClientCaCertificates(String),
}

/// Purpose of a file with certificates or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    /// Certificate chain of the server.
    Certificate,
    /// Private key of the server.
    Key,
    /// CA certificates that verify clients.
    ClientCaCertificates,
}

/// TLS parameters of a server.
#[derive(Clone, Debug)]
pub struct NbdTls {
    config: Arc<ServerConfig>,
    requires_certificates: bool,
}

impl NbdTls {
    /// Loads a certificate chain and its key from PEM files. `clients` is a PEM file of CA
    /// certificates: if set, a client must present a certificate that one of them has signed. If
    /// `names` is not empty, the certificate must contain one of these DNS names.
    ///
    /// # Errors
    /// A file cannot be read or has unexpected contents.
    pub fn load(
        certificate: &Path,
        key: &Path,
        clients: Option<&Path>,
        names: &[String],
    ) -> Result<Self, NbdTlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(NbdTlsError::Identity)?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(TlsFile::ClientCaCertificates, path)? {
                    let added = roots.add(authority);
                    added.map_err(|error| unusable(TlsFile::ClientCaCertificates, path, &error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                let clients =
                    |error: &dyn ToString| NbdTlsError::ClientCaCertificates(error.to_string());
                let verifier = verifier.map_err(|error| clients(&error))?;
                builder.with_client_cert_verifier(NamedClients::among(verifier, names)?)
            }
        };
        let key_of = private_key(key)?;
        let chain = certificates(TlsFile::Certificate, certificate)?;
        let mut config = builder.with_single_cert(chain, key_of).map_err(NbdTlsError::Identity)?;
        // A resumed session would bypass the verification of the client's certificate.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), requires_certificates: clients.is_some() })
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// Returns true if clients must present a certificate.
    pub(crate) const fn requires_certificates(&self) -> bool {
        self.requires_certificates
    }
}

/// Reads a private key. Rejects a file that all users may access.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, NbdTlsError> {
    let mut file = open_secret(path)?;
    PrivateKeyDer::from_pem_reader(&mut file).map_err(|error| unusable(TlsFile::Key, path, &error))
}

fn unusable(file: TlsFile, path: &Path, error: &dyn ToString) -> NbdTlsError {
    NbdTlsError::File { file, path: path.to_owned(), detail: error.to_string() }
}

fn certificates(file: TlsFile, path: &Path) -> Result<Vec<CertificateDer<'static>>, NbdTlsError> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = certificates.map_err(|error| unusable(file, path, &error))?;
    if certificates.is_empty() {
        return Err(unusable(file, path, &"the file has no certificate"));
    }
    Ok(certificates)
}

/// Verifier that accepts valid client certificates that contain one of the configured DNS names.
#[derive(Debug)]
struct NamedClients {
    verifier: Arc<dyn ClientCertVerifier>,
    names: Vec<ServerName<'static>>,
}

impl NamedClients {
    /// Returns a verifier that accepts the certificates that `verifier` accepts, if they contain
    /// one of `names`. If `names` is empty, returns `verifier` itself.
    fn among(
        verifier: Arc<dyn ClientCertVerifier>,
        names: &[String],
    ) -> Result<Arc<dyn ClientCertVerifier>, NbdTlsError> {
        if names.is_empty() {
            return Ok(verifier);
        }
        let name = |text: &String| {
            let invalid_name =
                |_| NbdTlsError::ClientCaCertificates(format!("`{text}` is not a DNS name"));
            ServerName::try_from(text.clone()).map_err(invalid_name)
        };
        let names = names.iter().map(name).collect::<Result<_, _>>()?;
        Ok(Arc::new(Self { verifier, names }))
    }
}

impl ClientCertVerifier for NamedClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.verifier.verify_client_cert(end_entity, intermediates, now)?;
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let is_named = self.names.iter().any(|name| verify_server_name(&certificate, name).is_ok());
        if is_named { Ok(verified) } else { Err(CertificateError::NotValidForName.into()) }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
