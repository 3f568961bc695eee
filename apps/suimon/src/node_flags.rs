//! Flag `--node`: connection to the daemon of another host over TCP with TLS.

use std::path::PathBuf;

use clap::Args;
use suimon_client::{Client, TlsEndpoint};
use suimon_contract::{ApiError, ErrorCode, Form, NodeConfig};

use crate::exit::Failure;

/// Flags of a connection over TCP.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct NodeFlags {
    /// Host name or IP address and TCP port of a daemon on any host, to connect to with TLS instead
    /// of over the Unix socket. Must precede the command. Requires `--ca-certificate` and
    /// `--token-file`.
    #[arg(
        id = "node",
        long,
        value_name = "HOST:PORT",
        env = "SUIMON_NODE",
        hide_env_values = true,
        value_parser = address,
        requires_all = ["node_authority", "node_token_file"]
    )]
    node: Option<String>,
    /// PEM file with CA certificates that sign the certificate of the daemon at `--node`, or with
    /// that certificate itself.
    #[arg(
        id = "node_authority",
        long = "ca-certificate",
        value_name = "PATH",
        env = "SUIMON_CA_CERTIFICATE",
        hide_env_values = true
    )]
    ca_certificate: Option<PathBuf>,
    /// File whose first line is the API token of the daemon at `--node`. The file must have no
    /// permissions for others (`chmod o=`).
    #[arg(
        id = "node_token_file",
        long = "token-file",
        value_name = "PATH",
        env = "SUIMON_TOKEN_FILE",
        hide_env_values = true
    )]
    token_file: Option<PathBuf>,
    /// Name that the certificate of the daemon must contain; the host of `--node` if absent.
    #[arg(
        id = "node_server_name",
        long = "server-name",
        value_name = "NAME",
        env = "SUIMON_SERVER_NAME",
        hide_env_values = true
    )]
    server_name: Option<String>,
}

fn address(text: &str) -> Result<String, String> {
    match Form::HostAndPort.accepts(&text.into()) {
        true => Ok(text.to_owned()),
        false => Err(format!("must be {}", Form::HostAndPort.describe())),
    }
}

impl NodeFlags {
    /// Returns the client for the flags; `None` if they are absent.
    pub(crate) fn client(&self) -> Option<Result<Client, Failure>> {
        let address = self.node.as_ref()?;
        let reach = TlsEndpoint {
            address: address.clone(),
            server_name: self
                .server_name
                .clone()
                .unwrap_or_else(|| NodeConfig::server_name_of(address).to_owned()),
            ca_certificate: self.ca_certificate.clone()?,
            token_file: self.token_file.clone()?,
        };
        Some(Client::tls(&reach).map_err(|error| {
            let error = ApiError::new(ErrorCode::InvalidValue, error.to_string());
            Failure::Refused(vec![error.with_resource(format!("--node {address}"))])
        }))
    }
}
