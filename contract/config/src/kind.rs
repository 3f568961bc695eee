//! Tables of the host file.

/// Table of the host file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// Top level of the file.
    File,
    /// `[host]`.
    Host,
    /// `[api]`.
    Api,
    /// `[console]`.
    Console,
    /// `[lab]`.
    Lab,
    /// `[power]`.
    Power,
    /// `[cluster]`.
    Cluster,
    /// `[[uplink]]`.
    Uplink,
    /// `[[team]]`.
    Team,
    /// `[[switch]]`.
    Switch,
    /// `[[nic]]`.
    Nic,
    /// `[[store]]`.
    Store,
    /// `[[qos_policy]]`.
    QosPolicy,
    /// `[[disk]]`.
    Disk,
    /// `[[vm]]`.
    Vm,
    /// `[[pf]]`.
    Pf,
    /// `[[node]]`.
    Node,
    /// `[nic.offload]`, `[uplink.offload]` and `[switch.host_offload]`.
    Offload,
    /// `[team.vmq]` and `[uplink.vmq]`.
    Vmq,
    /// `[disk.qos]`.
    DiskQos,
    /// `[disk.vhost_user]`.
    DiskVhostUser,
    /// `[disk.nbd]`.
    DiskNbd,
    /// `[cluster.tls]`.
    ClusterTls,
    /// `[[pf.vf]]`.
    Vf,
}

impl ResourceKind {
    /// Every kind of table, including the file itself, in the order in which a host file is
    /// written.
    pub const ALL: [Self; 24] = [
        Self::File,
        Self::Host,
        Self::Api,
        Self::Console,
        Self::Lab,
        Self::Power,
        Self::Cluster,
        Self::Uplink,
        Self::Team,
        Self::Switch,
        Self::Nic,
        Self::Store,
        Self::QosPolicy,
        Self::Disk,
        Self::Vm,
        Self::Pf,
        Self::Node,
        Self::Offload,
        Self::Vmq,
        Self::DiskQos,
        Self::DiskVhostUser,
        Self::DiskNbd,
        Self::ClusterTls,
        Self::Vf,
    ];

    /// Kinds of resource: tables with a name of which a host may have several.
    pub const RESOURCES: [Self; 10] = [
        Self::Switch,
        Self::Uplink,
        Self::Team,
        Self::Nic,
        Self::Store,
        Self::QosPolicy,
        Self::Disk,
        Self::Vm,
        Self::Pf,
        Self::Node,
    ];

    /// Returns true if a host may have several of this kind, each with a name.
    pub fn is_resource(self) -> bool {
        Self::RESOURCES.contains(&self)
    }

    /// Returns the words of the command line for resources of this kind, such as `qos policy` in
    /// `suimon qos policy list`.
    pub const fn command_words(self) -> &'static str {
        match self {
            Self::QosPolicy => "qos policy",
            _ => self.noun(),
        }
    }

    /// Returns the name of the kind in error messages and identifiers, such as `nic` in `nic/web`.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Host => "host",
            Self::Api => "api",
            Self::Console => "console",
            Self::Lab => "lab",
            Self::Power => "power",
            Self::Cluster => "cluster",
            Self::Switch => "switch",
            Self::Uplink => "uplink",
            Self::Team => "team",
            Self::Nic => "nic",
            Self::Store => "store",
            Self::QosPolicy => "qos_policy",
            Self::Disk => "disk",
            Self::Vm => "vm",
            Self::Pf => "pf",
            Self::Node => "node",
            Self::Vf => "vf",
            Self::Offload => "offload",
            Self::Vmq => "vmq",
            Self::DiskQos => "qos",
            Self::DiskVhostUser => "vhost_user",
            Self::DiskNbd => "nbd",
            Self::ClusterTls => "tls",
        }
    }
}
