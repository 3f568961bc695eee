//! Commands of `cluster`: membership of the host in a cluster.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;
use suimon_client::ChangeOptions;
use suimon_contract::{ClusterConfig, ClusterTls, Name, ResourceKind, rename_of_old_key};
use suimon_tables::cluster_tables::details;

use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::print_outcome;
use crate::settings::{self, Setting};

/// Keys that identify the host and its cluster, and therefore cannot be changed.
const IDENTITY: [&str; 2] = ["name", "node"];

/// Verbs of `cluster`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// Show the nodes of the cluster and the IOPS of this host on shared stores.
    Status,
    /// Create a cluster with this host as its first node.
    Init(Box<MembershipFlags>),
    /// Join a cluster, or create it if it does not exist.
    Join(Box<JoinFlags>),
    /// Change the connection to etcd without leaving the cluster.
    Set(ClusterSetFlags),
    /// Leave the cluster and release the reservations of this host.
    Leave(LeaveFlags),
    /// Remove a permanently failed node from the cluster and release its reservations.
    Remove {
        /// Name of the node in the cluster, as shown by `suimon cluster status`.
        node: Name,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct JoinFlags {
    #[command(flatten)]
    node: MembershipFlags,
    /// Store the configuration even if etcd does not respond; the host joins when it responds.
    #[arg(long)]
    force: bool,
}

/// Identity of the host in the cluster, and connection to etcd.
#[derive(Clone, Debug, Args)]
pub(crate) struct MembershipFlags {
    /// Name of the cluster.
    #[arg(value_name = "CLUSTER")]
    name: Name,
    /// Name of this host in the cluster, unique among its nodes.
    #[arg(long = "as", value_name = "NODE")]
    node: Name,
    /// URLs of all etcd members, 1 to 16, such as `https://192.0.2.10:2379`.
    #[arg(long, value_name = "URL,…", value_delimiter = ',', required = true)]
    endpoints: Vec<String>,
    /// PEM file with the CA certificates that sign the certificates of the etcd members; required
    /// for https.
    #[arg(id = "etcd_authority", long = "ca-certificate", value_name = "PATH")]
    ca_certificate: Option<PathBuf>,
    /// PEM file with the client certificate of this host, if etcd requires one.
    #[arg(long, value_name = "PATH", requires_all = ["etcd_authority", "key"])]
    certificate: Option<PathBuf>,
    /// PEM file with the private key of the client certificate. The file must have no permissions
    /// for others (`chmod o=`).
    #[arg(long, value_name = "PATH", requires = "certificate")]
    key: Option<PathBuf>,
    /// User name for etcd; no authentication by user if absent.
    #[arg(long, value_name = "USER", requires = "password_file")]
    user: Option<String>,
    /// File whose first line is the password of the etcd user. The file must have no permissions
    /// for others (`chmod o=`).
    #[arg(long, value_name = "PATH", requires = "user")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    change: ChangeFlags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterSetFlags {
    #[arg(
        value_name = "KEY=VALUE|KEY=default",
        required = true,
        value_parser = setting,
        help = settings_help(),
        long_help = settings::long_help(&settings_help(), &[ResourceKind::Cluster, ResourceKind::ClusterTls])
    )]
    settings: Vec<ClusterSetting>,
    #[command(flatten)]
    change: ChangeFlags,
}

/// Setting of `[cluster]` or of `[cluster.tls]`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ClusterSetting {
    Own(Setting),
    Tls(Setting),
}

fn setting(text: &str) -> Result<ClusterSetting, String> {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    let name = rename_of_old_key(ResourceKind::ClusterTls, name).map_or(name, |rename| rename.new);
    if IDENTITY.contains(&name) {
        return Err(format!(
            "`{name}` cannot be changed; leave the cluster with `suimon cluster leave`, then join \
             with the other name"
        ));
    }
    if ResourceKind::ClusterTls.key(name).is_none() && ResourceKind::Cluster.key(name).is_none() {
        return Err(format!("no key `{name}` exists; the keys are {}", keys()));
    }
    if !text.contains('=') {
        return Err(format!("must be KEY=VALUE or KEY=default; the keys are {}", keys()));
    }
    if ResourceKind::ClusterTls.key(name).is_some() {
        return settings::parse(ResourceKind::ClusterTls, text).map(ClusterSetting::Tls);
    }
    settings::parse(ResourceKind::Cluster, text).map(ClusterSetting::Own)
}

/// Returns the names of the keys that `cluster set` can change, separated by commas.
fn keys() -> String {
    let own_keys = ResourceKind::Cluster.keys().iter().map(|key| key.name);
    let own_keys = own_keys.filter(|name| !IDENTITY.contains(name) && *name != "tls");
    let tls = ResourceKind::ClusterTls.keys().iter().map(|key| key.name);
    own_keys.chain(tls).collect::<Vec<&str>>().join(", ")
}

fn settings_help() -> String {
    format!(
        "Keys and their values, such as `endpoints=https://a:2379,https://b:2379`. `KEY=default` \
         removes a key, `tls=default` all keys of TLS. The keys are {}",
        keys()
    )
}

/// Returns the merge patch of `[cluster]` with the given settings.
fn patch(settings: Vec<ClusterSetting>) -> Result<Value, Failure> {
    let (mut own_settings, mut tls) = (Vec::new(), Vec::new());
    for setting in settings {
        match setting {
            ClusterSetting::Own(setting) => own_settings.push(setting),
            ClusterSetting::Tls(setting) => tls.push(setting),
        }
    }
    let mut table = settings::merge_patch(&own_settings)?;
    if !tls.is_empty() {
        let tls = Value::Object(settings::merge_patch(&tls)?);
        if table.insert("tls".to_owned(), tls).is_some() {
            let text = "tls=default removes all keys of TLS; give either it or the keys";
            return Err(Failure::Usage(text.to_owned()));
        }
    }
    Ok(Value::Object(table))
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LeaveFlags {
    /// Leave even if disks are on shared stores, where the cluster then does not limit the IOPS of
    /// this host, or if etcd does not respond.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    change: ChangeFlags,
}

impl ClusterVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Status => Ok(context.show(&context.client.cluster().await?, details)?),
            Self::Init(node) => {
                let options = node.change.options();
                let outcome = context.client.init_cluster(&node.config(), options).await?;
                print_outcome(context, outcome, node.change).await
            }
            Self::Join(flags) => {
                let JoinFlags { node, force } = *flags;
                let options = ChangeOptions { force, ..node.change.options() };
                let outcome = context.client.join_cluster(&node.config(), options).await?;
                print_outcome(context, outcome, node.change).await
            }
            Self::Set(ClusterSetFlags { settings, change }) => {
                let patch = patch(settings)?;
                let outcome = context.client.patch_cluster(&patch, change.options()).await?;
                print_outcome(context, outcome, change).await
            }
            Self::Leave(LeaveFlags { force, change }) => {
                let options = ChangeOptions { force, ..change.options() };
                let outcome = context.client.leave_cluster(options).await?;
                print_outcome(context, outcome, change).await
            }
            Self::Remove { node } => Ok(context.client.remove_cluster_node(node.as_str()).await?),
        }
    }
}

impl MembershipFlags {
    fn config(&self) -> ClusterConfig {
        let tls = self.ca_certificate.clone().map(|ca_certificate| ClusterTls {
            ca_certificate,
            certificate: self.certificate.clone(),
            key: self.key.clone(),
        });
        ClusterConfig {
            name: self.name.clone(),
            node: self.node.clone(),
            endpoints: self.endpoints.clone(),
            tls,
            user: self.user.clone(),
            password_file: self.password_file.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_tls_are_in_its_table_and_the_identity_is_refused() {
        let read = |arguments: &[&str]| -> Result<Value, String> {
            let settings =
                arguments.iter().map(|argument| setting(argument)).collect::<Result<_, _>>()?;
            patch(settings).map_err(|error| error.to_string())
        };
        let arguments = ["endpoints=https://a:2379,https://b:2379", "ca_certificate=/etc/ca.pem"];
        let patch = read(&[arguments[0], arguments[1], "user=default"]).unwrap();
        let expected = serde_json::json!({
            "endpoints": ["https://a:2379", "https://b:2379"],
            "tls": { "ca_certificate": "/etc/ca.pem" },
            "user": null,
        });
        assert_eq!(patch, expected);
        assert_eq!(read(&["tls=default"]).unwrap(), serde_json::json!({ "tls": null }));
        assert!(
            read(&["tls=default", arguments[1]])
                .unwrap_err()
                .contains("give either it or the keys")
        );
        assert!(read(&["node=other"]).unwrap_err().contains("cluster leave"));
        for invalid in ["colour=red", "colour", "ca_certificate"] {
            let error = read(&[invalid]).unwrap_err();
            assert!(
                error.contains("ca_certificate, certificate") && !error.contains("node"),
                "{error}"
            );
        }
    }
}
