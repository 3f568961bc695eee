//! Keys of the host file: names, forms of values, and effect of a change on traffic. The parser,
//! validation, plans, the command line and the reference pages derive from this table.

use crate::cluster_keys::{CLUSTER, CLUSTER_TLS};
use crate::form::{HOST_ADDRESSES_MAX, WORKERS_MAX};
use crate::key::{ChangeEffect, Key, QUEUES, defaulted, optional, required};
use crate::kind::ResourceKind;
use crate::pf_keys::{PF, VF};
use crate::power_keys::POWER;
use crate::storage_keys::{
    DISK, DISK_NBD, DISK_QOS, DISK_VHOST_USER, NBD_BUFFER, NBD_CONNECTIONS, QOS_POLICY, STORE,
};
use crate::vm_keys::VM;
use crate::{Form, TEAM_MEMBERS_MAX};

impl ResourceKind {
    /// Returns the keys of a table of this kind, in the order in which they are written.
    pub const fn keys(self) -> &'static [Key] {
        match self {
            Self::File => FILE,
            Self::Host => HOST,
            Self::Api => API,
            Self::Console => CONSOLE,
            Self::Lab => LAB,
            Self::Power => POWER,
            Self::Cluster => CLUSTER,
            Self::Switch => SWITCH,
            Self::Uplink => UPLINK,
            Self::Team => TEAM,
            Self::Nic => NIC,
            Self::Store => STORE,
            Self::QosPolicy => QOS_POLICY,
            Self::Disk => DISK,
            Self::Vm => VM,
            Self::Pf => PF,
            Self::Node => NODE,
            Self::Vf => VF,
            Self::Offload => OFFLOAD,
            Self::Vmq => VMQ,
            Self::DiskQos => DISK_QOS,
            Self::DiskVhostUser => DISK_VHOST_USER,
            Self::DiskNbd => DISK_NBD,
            Self::ClusterTls => CLUSTER_TLS,
        }
    }

    /// Returns the key with this name.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.name == name)
    }
}

/// Highest NUMA node number: Linux supports at most 1024 nodes (`NODES_SHIFT` is at most 10).
const NUMA_NODE_MAX: u64 = 1023;
const MTU: Form = Form::Number { min: 68, most: 9216 };
/// Number of a worker, counted from 0.
const PROCESSOR: Form = Form::Number { min: 0, most: WORKERS_MAX as u64 - 1 };

const FILE: &[Key] = &[
    defaulted("host", Form::Table(ResourceKind::Host), ChangeEffect::Live),
    optional("api", Form::Table(ResourceKind::Api), ChangeEffect::NextStart),
    optional("console", Form::Table(ResourceKind::Console), ChangeEffect::NextStart),
    optional("lab", Form::Table(ResourceKind::Lab), ChangeEffect::NextStart),
    optional("power", Form::Table(ResourceKind::Power), ChangeEffect::Live),
    optional("cluster", Form::Table(ResourceKind::Cluster), ChangeEffect::Live),
    defaulted("switch", Form::Tables(ResourceKind::Switch), ChangeEffect::Live),
    defaulted("uplink", Form::Tables(ResourceKind::Uplink), ChangeEffect::Live),
    defaulted("team", Form::Tables(ResourceKind::Team), ChangeEffect::Live),
    defaulted("nic", Form::Tables(ResourceKind::Nic), ChangeEffect::Live),
    defaulted("store", Form::Tables(ResourceKind::Store), ChangeEffect::Live),
    defaulted("qos_policy", Form::Tables(ResourceKind::QosPolicy), ChangeEffect::Live),
    defaulted("disk", Form::Tables(ResourceKind::Disk), ChangeEffect::Live),
    defaulted("vm", Form::Tables(ResourceKind::Vm), ChangeEffect::Live),
    defaulted("pf", Form::Tables(ResourceKind::Pf), ChangeEffect::Live),
    defaulted("node", Form::Tables(ResourceKind::Node), ChangeEffect::Live),
];

const HOST: &[Key] = &[
    optional("name", Form::HostName, ChangeEffect::Live),
    optional("worker_cpus", Form::Cpus, ChangeEffect::Live),
    optional(
        "floating_workers",
        Form::Number { min: 1, most: WORKERS_MAX as u64 },
        ChangeEffect::Live,
    ),
    optional("vm_folder", Form::FilePath, ChangeEffect::NextBoot),
    optional("nbd_connections_max", NBD_CONNECTIONS, ChangeEffect::Live),
    optional("nbd_buffer_max_bytes", NBD_BUFFER, ChangeEffect::Live),
    optional("nbd_peer_connections_max", NBD_CONNECTIONS, ChangeEffect::Live),
    optional("nbd_peer_buffer_max_bytes", NBD_BUFFER, ChangeEffect::Live),
];

const API: &[Key] = &[
    required("listen", Form::SocketAddress, ChangeEffect::NextStart),
    required("tls_certificate", Form::FilePath, ChangeEffect::NextStart),
    required("tls_key", Form::FilePath, ChangeEffect::NextStart),
    required("token_file", Form::FilePath, ChangeEffect::NextStart),
    optional("metrics_token_file", Form::FilePath, ChangeEffect::NextStart),
];

const CONSOLE: &[Key] = &[
    required("listen", Form::LoopbackAddress, ChangeEffect::NextStart),
    optional("token_file", Form::FilePath, ChangeEffect::NextStart),
];

const LAB: &[Key] = &[defaulted("results", Form::FilePath, ChangeEffect::NextStart)];

const SWITCH: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("kind", Form::OneOf(&["private", "internal", "external"]), ChangeEffect::Live),
    optional("uplink", Form::Name, ChangeEffect::Live),
    optional("host_device", Form::Device, ChangeEffect::Live),
    defaulted("host_offload", Form::Table(ResourceKind::Offload), ChangeEffect::Live),
    defaulted("ageing_s", Form::Number { min: 10, most: 1_000_000 }, ChangeEffect::Live),
    defaulted("iov", Form::Flag, ChangeEffect::Live),
];

const UPLINK: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("device", Form::Device, ChangeEffect::Replace),
    defaulted("driver", Form::OneOf(&["af_packet", "af_xdp", "tap"]), ChangeEffect::Replace),
    defaulted("queues", QUEUES, ChangeEffect::Replace),
    optional("mtu", MTU, ChangeEffect::Live),
    defaulted("host_addresses", Form::UnicastIps { most: HOST_ADDRESSES_MAX }, ChangeEffect::Live),
    defaulted("offload", Form::Table(ResourceKind::Offload), ChangeEffect::Live),
    defaulted("vmq", Form::Table(ResourceKind::Vmq), ChangeEffect::Live),
];

const TEAM: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("members", Form::Names { max: TEAM_MEMBERS_MAX }, ChangeEffect::Live),
    required("mode", Form::OneOf(&["static", "lacp", "switch-independent"]), ChangeEffect::Live),
    defaulted(
        "algorithm",
        Form::OneOf(&[
            "hyper-v-port",
            "transport-ports",
            "ip-addresses",
            "mac-addresses",
            "dynamic",
        ]),
        ChangeEffect::Live,
    ),
    optional("lacp_timer", Form::OneOf(&["slow", "fast"]), ChangeEffect::Live),
    optional("lacp_active", Form::Flag, ChangeEffect::Live),
    optional("lacp_system_priority", Form::Number { min: 0, most: 65_535 }, ChangeEffect::Live),
    defaulted(
        "min_links",
        Form::Number { min: 1, most: TEAM_MEMBERS_MAX as u64 },
        ChangeEffect::Live,
    ),
    optional("standby", Form::Name, ChangeEffect::Live),
    optional("primary", Form::Name, ChangeEffect::Live),
    defaulted("vmq", Form::Table(ResourceKind::Vmq), ChangeEffect::Live),
];

const NIC: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("switch", Form::Name, ChangeEffect::Live),
    required("backend", Form::OneOf(&["vhost-user", "tap", "legacy"]), ChangeEffect::Replace),
    optional("socket", Form::UnixSocketPath, ChangeEffect::Replace),
    optional("mode", Form::OneOf(&["server", "client"]), ChangeEffect::Replace),
    optional("device", Form::Device, ChangeEffect::Replace),
    optional("netns", Form::Namespace, ChangeEffect::Replace),
    optional("mac", Form::UnicastMac, ChangeEffect::LiveOnTap),
    optional("vlan", Form::Vlan, ChangeEffect::Live),
    optional("trunk", Form::Vlans, ChangeEffect::Live),
    defaulted("queues", QUEUES, ChangeEffect::Replace),
    defaulted("mtu", MTU, ChangeEffect::LiveOnTap),
    defaulted("mac_spoofing", Form::Flag, ChangeEffect::Live),
    defaulted("isolated", Form::Flag, ChangeEffect::Live),
    optional("storm_limit_fps", Form::Number { min: 1, most: 10_000_000 }, ChangeEffect::Live),
    optional(
        "bandwidth_max_bps",
        Form::Number { min: 8000, most: 1_000_000_000_000_000 },
        ChangeEffect::Live,
    ),
    defaulted("learned_max", Form::Number { min: 1, most: 65_536 }, ChangeEffect::Live),
    defaulted("kernel_path", Form::Flag, ChangeEffect::Live),
    defaulted("vmq_weight", Form::Number { min: 0, most: 100 }, ChangeEffect::Live),
    defaulted("iov_weight", Form::Number { min: 0, most: 100 }, ChangeEffect::Live),
    defaulted("offload", Form::Table(ResourceKind::Offload), ChangeEffect::Live),
];

const NODE: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("address", Form::HostAndPort, ChangeEffect::Live),
    required("ca_certificate", Form::FilePath, ChangeEffect::Live),
    required("token_file", Form::FilePath, ChangeEffect::Live),
    optional("server_name", Form::DnsName, ChangeEffect::Live),
];

const OFFLOAD: &[Key] = &[
    defaulted("tx_checksum", Form::Flag, ChangeEffect::Live),
    defaulted("rx_checksum", Form::Flag, ChangeEffect::Live),
    defaulted("tx_ip_checksum", Form::Flag, ChangeEffect::Live),
    defaulted("rx_ip_checksum", Form::Flag, ChangeEffect::Live),
    defaulted("segmentation", Form::Flag, ChangeEffect::Live),
    defaulted("receive_coalescing", Form::Flag, ChangeEffect::Live),
];

const VMQ: &[Key] = &[
    defaulted("enabled", Form::Flag, ChangeEffect::Live),
    defaulted("mode", Form::OneOf(&["static", "dynamic"]), ChangeEffect::Live),
    optional("base_worker", PROCESSOR, ChangeEffect::Live),
    defaulted("max_workers", Form::Number { min: 1, most: WORKERS_MAX as u64 }, ChangeEffect::Live),
    optional("max_worker_number", PROCESSOR, ChangeEffect::Live),
    optional("numa_node", Form::Number { min: 0, most: NUMA_NODE_MAX }, ChangeEffect::Live),
];

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
