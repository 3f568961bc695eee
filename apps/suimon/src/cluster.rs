//! `cluster`: the cluster that the host is a node of.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use suimon_client::ChangeOptions;
use suimon_contract::{ClusterConfig, ClusterTls, Name};

use crate::cli::ChangeFlags;
use crate::cluster_tables::details;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::finish;

/// Verbs of `cluster`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ClusterVerb {
    /// Show the cluster's nodes, who divides which shared store, and what this host may do of each.
    Status,
    /// Make a cluster, and be its first node. One that is there is refused.
    Init(Box<MembershipFlags>),
    /// Be a node of a cluster: stores with `shared` are held to what it gives this host of them.
    /// The first node that joins makes the cluster.
    Join(Box<JoinFlags>),
    /// Give back what is reserved for this host, and be by itself.
    Leave(LeaveFlags),
    /// Take a node out of the cluster that is gone for good, so that what is reserved for it is
    /// free. One that lives is not taken out.
    Remove {
        /// Its name in the cluster.
        node: Name,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct JoinFlags {
    #[command(flatten)]
    node: MembershipFlags,
    /// Do not ask first whether etcd answers.
    #[arg(long)]
    force: bool,
}

/// Which node of which cluster the host is to be.
#[derive(Clone, Debug, Args)]
pub(crate) struct MembershipFlags {
    /// The cluster's name.
    #[arg(value_name = "CLUSTER")]
    name: Name,
    /// This host's name in it, which no other node has.
    #[arg(long = "as", value_name = "NODE")]
    node: Name,
    /// URLs of etcd's members.
    #[arg(long, value_name = "URL,…", value_delimiter = ',', required = true)]
    endpoints: Vec<String>,
    /// Certificates in PEM, of which one has signed those of etcd's members; for https.
    #[arg(id = "etcd_authority", long = "authority", value_name = "PATH")]
    authority: Option<PathBuf>,
    /// This node's certificate in PEM, if etcd wants one.
    #[arg(long, value_name = "PATH", requires_all = ["etcd_authority", "key"])]
    certificate: Option<PathBuf>,
    /// Its private key.
    #[arg(long, value_name = "PATH", requires = "certificate")]
    key: Option<PathBuf>,
    /// The user of etcd that this node is.
    #[arg(long, value_name = "USER", requires = "password_file")]
    user: Option<String>,
    /// File whose first line is the user's password.
    #[arg(long, value_name = "PATH", requires = "user")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    change: ChangeFlags,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LeaveFlags {
    /// Although disks would load shared stores without limit from then on, or etcd does not answer.
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
                finish(context, outcome, node.change).await
            }
            Self::Join(flags) => {
                let JoinFlags { node, force } = *flags;
                let options = ChangeOptions { force, ..node.change.options() };
                let outcome = context.client.join_cluster(&node.config(), options).await?;
                finish(context, outcome, node.change).await
            }
            Self::Leave(LeaveFlags { force, change }) => {
                let options = ChangeOptions { force, ..change.options() };
                let outcome = context.client.leave_cluster(options).await?;
                finish(context, outcome, change).await
            }
            Self::Remove { node } => Ok(context.client.remove_cluster_node(node.as_str()).await?),
        }
    }
}

impl MembershipFlags {
    fn config(&self) -> ClusterConfig {
        let tls = self.authority.clone().map(|authority| ClusterTls {
            authority,
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
