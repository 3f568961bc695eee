//! Connections to clusters through etcd.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use suimon_contract::{ApiError, ClusterConfig, ErrorCode};
use suimon_etcd::{EtcdSpec, EtcdStore, EtcdTls};
use suimon_node::{CLUSTER_TIMEOUT, ClusterStoreConnector, cluster_prefix};
use suimon_ports::{ClusterKvStore, ClusterStoreErrorKind as Kind};
use suimon_secret_file::{SecretFileError, open_secret};

/// Largest accepted password file in bytes.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// Connector to the etcd named in the host file. Its calls block and must not run on async runtime
/// threads.
pub struct EtcdConnector;

impl ClusterStoreConnector for EtcdConnector {
    fn connect(&self, config: &ClusterConfig) -> Result<Arc<dyn ClusterKvStore>, ApiError> {
        let store = EtcdStore::connect(spec(config)?).map_err(|error| {
            let (code, field) = match error.kind {
                Kind::NotAllowed => (ErrorCode::PermissionDenied, "user"),
                Kind::Refused => (ErrorCode::Unsupported, "endpoints"),
                _ => (ErrorCode::Unreachable, "endpoints"),
            };
            api_error(code, field, error.to_string())
        })?;
        Ok(Arc::new(store))
    }
}

fn spec(config: &ClusterConfig) -> Result<EtcdSpec, ApiError> {
    let tls = config.tls.as_ref();
    let tls = tls.map(|tls| {
        let pair = tls.certificate.as_ref().zip(tls.key.as_ref());
        let identity = pair.map(|(certificate, key)| {
            Ok::<_, ApiError>((file("tls", certificate)?, secret("tls", key)?))
        });
        let ca_certificates = file("tls", &tls.ca_certificate)?;
        Ok::<_, ApiError>(EtcdTls { ca_certificates, identity: identity.transpose()? })
    });
    let user = config.user.as_ref().zip(config.password_file.as_ref());
    let user = user.map(|(user, file)| Ok::<_, ApiError>((user.clone(), password(file)?)));
    Ok(EtcdSpec {
        endpoints: config.endpoints.clone(),
        tls: tls.transpose()?,
        credentials: user.transpose()?,
        prefix: cluster_prefix(&config.name),
        timeout: CLUSTER_TIMEOUT,
    })
}

fn file(field: &str, path: &Path) -> Result<Vec<u8>, ApiError> {
    std::fs::read(path).map_err(|error| unreadable(field, path, &error))
}

/// Returns the error for a configured file that cannot be read.
fn unreadable(field: &str, path: &Path, error: &std::io::Error) -> ApiError {
    let code = match error.kind() {
        std::io::ErrorKind::PermissionDenied => ErrorCode::PermissionDenied,
        _ => ErrorCode::DeviceMissing,
    };
    api_error(code, field, format!("cannot read {}: {error}", path.display()))
}

/// Reads a file that must not be readable by all users.
fn secret(field: &str, path: &Path) -> Result<Vec<u8>, ApiError> {
    let opened = open_secret(path).map_err(|error| match error {
        SecretFileError::Unreadable { source, .. } => unreadable(field, path, &source),
        SecretFileError::OpenToAll { .. } => {
            api_error(ErrorCode::PermissionDenied, field, error.to_string())
        }
    })?;
    let mut bytes = Vec::new();
    let read = opened.take(PASSWORD_BYTES_MAX * 16).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(field, path, &error))?;
    Ok(bytes)
}

/// Returns the first line of a file.
fn password(path: &Path) -> Result<String, ApiError> {
    let bytes = secret("password_file", path)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let line = std::str::from_utf8(line).ok().filter(|line| !line.is_empty());
    line.map(str::to_owned).ok_or_else(|| {
        let text = format!(
            "the first line of {} is empty or not UTF-8; write the password of the etcd user there",
            path.display()
        );
        api_error(ErrorCode::InvalidValue, "password_file", text)
    })
}

fn api_error(code: ErrorCode, field: &str, text: String) -> ApiError {
    ApiError::new(code, text).with_resource("cluster").with_field(field)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn unreadable_files_are_reported_with_their_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let config = |path: &Path| -> ClusterConfig {
            serde_json::from_value(serde_json::json!({
                "name": "lab", "node": "n1", "endpoints": ["http://127.0.0.1:1"],
                "user": "suimon", "password_file": path,
            }))
            .unwrap()
        };
        let spec_error = |path: &Path| spec(&config(path)).unwrap_err();
        assert!(spec_error(&path).message.contains("cannot read"));
        std::fs::write(&path, "wonder\nrest").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(spec_error(&path).message.contains("chmod"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let spec = spec(&config(&path)).unwrap();
        assert_eq!(spec.credentials, Some(("suimon".to_owned(), "wonder".to_owned())));
        assert_eq!(spec.prefix, "/suimon/lab/");
        // No server listens; the call fails before its deadline.
        let Err(error) = EtcdConnector.connect(&config(&path)) else { panic!("nobody is there") };
        assert_eq!(error.field.as_deref(), Some("endpoints"));
    }
}
