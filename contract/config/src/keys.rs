//! Keys of the host file: names, forms of values, and effect of a change on traffic. The parser,
//! validation, plans, the command line and the reference pages derive from this table.

use crate::cluster_keys::{CLUSTER, CLUSTER_TLS};
use crate::form::{HOST_ADDRESSES_MAX, WORKERS_MAX};
use crate::key::{ChangeEffect, Key, QUEUE_COUNT, optional, optional_with_default, required};
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
const MTU: Form = Form::Number { min: 68, max: 9216 };
/// Number of a worker, counted from 0.
const PROCESSOR: Form = Form::Number { min: 0, max: WORKERS_MAX as u64 - 1 };

const FILE: &[Key] = &[
    optional_with_default("host", Form::Table(ResourceKind::Host), ChangeEffect::Live),
    optional("api", Form::Table(ResourceKind::Api), ChangeEffect::NextDaemonStart),
    optional("console", Form::Table(ResourceKind::Console), ChangeEffect::NextDaemonStart),
    optional("lab", Form::Table(ResourceKind::Lab), ChangeEffect::NextDaemonStart),
    optional("power", Form::Table(ResourceKind::Power), ChangeEffect::Live),
    optional("cluster", Form::Table(ResourceKind::Cluster), ChangeEffect::Live),
    optional_with_default("switch", Form::Tables(ResourceKind::Switch), ChangeEffect::Live),
    optional_with_default("uplink", Form::Tables(ResourceKind::Uplink), ChangeEffect::Live),
    optional_with_default("team", Form::Tables(ResourceKind::Team), ChangeEffect::Live),
    optional_with_default("nic", Form::Tables(ResourceKind::Nic), ChangeEffect::Live),
    optional_with_default("store", Form::Tables(ResourceKind::Store), ChangeEffect::Live),
    optional_with_default("qos_policy", Form::Tables(ResourceKind::QosPolicy), ChangeEffect::Live),
    optional_with_default("disk", Form::Tables(ResourceKind::Disk), ChangeEffect::Live),
    optional_with_default("vm", Form::Tables(ResourceKind::Vm), ChangeEffect::Live),
    optional_with_default("pf", Form::Tables(ResourceKind::Pf), ChangeEffect::Live),
    optional_with_default("node", Form::Tables(ResourceKind::Node), ChangeEffect::Live),
];

const HOST: &[Key] = &[
    optional("name", Form::HostName, ChangeEffect::Live),
    optional("worker_cpus", Form::Cpus, ChangeEffect::Live),
    optional(
        "floating_workers",
        Form::Number { min: 1, max: WORKERS_MAX as u64 },
        ChangeEffect::Live,
    ),
    optional("vm_folder", Form::FilePath, ChangeEffect::NextVmStart),
    optional("nbd_connections_max", NBD_CONNECTIONS, ChangeEffect::Live),
    optional("nbd_buffer_max_bytes", NBD_BUFFER, ChangeEffect::Live),
    optional("nbd_peer_connections_max", NBD_CONNECTIONS, ChangeEffect::Live),
    optional("nbd_peer_buffer_max_bytes", NBD_BUFFER, ChangeEffect::Live),
];

const API: &[Key] = &[
    required("listen", Form::SocketAddress, ChangeEffect::NextDaemonStart),
    required("tls_certificate", Form::FilePath, ChangeEffect::NextDaemonStart),
    required("tls_key", Form::FilePath, ChangeEffect::NextDaemonStart),
    required("token_file", Form::FilePath, ChangeEffect::NextDaemonStart),
    optional("metrics_token_file", Form::FilePath, ChangeEffect::NextDaemonStart),
];

const CONSOLE: &[Key] = &[
    required("listen", Form::LoopbackAddress, ChangeEffect::NextDaemonStart),
    optional("token_file", Form::FilePath, ChangeEffect::NextDaemonStart),
];

const LAB: &[Key] =
    &[optional_with_default("results", Form::FilePath, ChangeEffect::NextDaemonStart)];

const SWITCH: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("kind", Form::OneOfKeywords(&["private", "internal", "external"]), ChangeEffect::Live),
    optional("uplink", Form::Name, ChangeEffect::Live),
    optional("host_device", Form::NetworkDevice, ChangeEffect::Live),
    optional_with_default("host_offload", Form::Table(ResourceKind::Offload), ChangeEffect::Live),
    optional_with_default("ageing_s", Form::Number { min: 10, max: 1_000_000 }, ChangeEffect::Live),
    optional_with_default("iov", Form::Flag, ChangeEffect::Live),
];

const UPLINK: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("device", Form::NetworkDevice, ChangeEffect::Replace),
    optional_with_default(
        "driver",
        Form::OneOfKeywords(&["af_packet", "af_xdp", "tap"]),
        ChangeEffect::Replace,
    ),
    optional_with_default("queues", QUEUE_COUNT, ChangeEffect::Replace),
    optional("mtu", MTU, ChangeEffect::Live),
    optional_with_default(
        "host_addresses",
        Form::UnicastIps { max: HOST_ADDRESSES_MAX },
        ChangeEffect::Live,
    ),
    optional_with_default("offload", Form::Table(ResourceKind::Offload), ChangeEffect::Live),
    optional_with_default("vmq", Form::Table(ResourceKind::Vmq), ChangeEffect::Live),
];

const TEAM: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("members", Form::Names { max: TEAM_MEMBERS_MAX }, ChangeEffect::Live),
    required(
        "mode",
        Form::OneOfKeywords(&["static", "lacp", "switch-independent"]),
        ChangeEffect::Live,
    ),
    optional_with_default(
        "algorithm",
        Form::OneOfKeywords(&[
            "hyper-v-port",
            "transport-ports",
            "ip-addresses",
            "mac-addresses",
            "dynamic",
        ]),
        ChangeEffect::Live,
    ),
    optional("lacp_timer", Form::OneOfKeywords(&["slow", "fast"]), ChangeEffect::Live),
    optional("lacp_active", Form::Flag, ChangeEffect::Live),
    optional("lacp_system_priority", Form::Number { min: 0, max: 65_535 }, ChangeEffect::Live),
    optional_with_default(
        "min_links",
        Form::Number { min: 1, max: TEAM_MEMBERS_MAX as u64 },
        ChangeEffect::Live,
    ),
    optional("standby", Form::Name, ChangeEffect::Live),
    optional("primary", Form::Name, ChangeEffect::Live),
    optional_with_default("vmq", Form::Table(ResourceKind::Vmq), ChangeEffect::Live),
];

const NIC: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("switch", Form::Name, ChangeEffect::Live),
    required(
        "backend",
        Form::OneOfKeywords(&["vhost-user", "tap", "legacy"]),
        ChangeEffect::Replace,
    ),
    optional("socket", Form::UnixSocketPath, ChangeEffect::Replace),
    optional("mode", Form::OneOfKeywords(&["server", "client"]), ChangeEffect::Replace),
    optional("device", Form::NetworkDevice, ChangeEffect::Replace),
    optional("netns", Form::NetworkNamespace, ChangeEffect::Replace),
    optional("mac", Form::UnicastMac, ChangeEffect::LiveOnTap),
    optional("vlan", Form::Vlan, ChangeEffect::Live),
    optional("trunk", Form::Vlans, ChangeEffect::Live),
    optional_with_default("queues", QUEUE_COUNT, ChangeEffect::Replace),
    optional_with_default("mtu", MTU, ChangeEffect::LiveOnTap),
    optional_with_default("mac_spoofing", Form::Flag, ChangeEffect::Live),
    optional_with_default("isolated", Form::Flag, ChangeEffect::Live),
    optional("storm_limit_fps", Form::Number { min: 1, max: 10_000_000 }, ChangeEffect::Live),
    optional(
        "bandwidth_max_bps",
        Form::Number { min: 8000, max: 1_000_000_000_000_000 },
        ChangeEffect::Live,
    ),
    optional_with_default("learned_max", Form::Number { min: 1, max: 65_536 }, ChangeEffect::Live),
    optional_with_default("kernel_path", Form::Flag, ChangeEffect::Live),
    optional_with_default("vmq_weight", Form::Number { min: 0, max: 100 }, ChangeEffect::Live),
    optional_with_default("iov_weight", Form::Number { min: 0, max: 100 }, ChangeEffect::Live),
    optional_with_default("offload", Form::Table(ResourceKind::Offload), ChangeEffect::Live),
];

const NODE: &[Key] = &[
    required("name", Form::Name, ChangeEffect::Identity),
    required("address", Form::HostAndPort, ChangeEffect::Live),
    required("ca_certificate", Form::FilePath, ChangeEffect::Live),
    required("token_file", Form::FilePath, ChangeEffect::Live),
    optional("server_name", Form::DnsName, ChangeEffect::Live),
];

const OFFLOAD: &[Key] = &[
    optional_with_default("tx_checksum", Form::Flag, ChangeEffect::Live),
    optional_with_default("rx_checksum", Form::Flag, ChangeEffect::Live),
    optional_with_default("tx_ip_checksum", Form::Flag, ChangeEffect::Live),
    optional_with_default("rx_ip_checksum", Form::Flag, ChangeEffect::Live),
    optional_with_default("segmentation", Form::Flag, ChangeEffect::Live),
    optional_with_default("receive_coalescing", Form::Flag, ChangeEffect::Live),
];

const VMQ: &[Key] = &[
    optional_with_default("enabled", Form::Flag, ChangeEffect::Live),
    optional_with_default("mode", Form::OneOfKeywords(&["static", "dynamic"]), ChangeEffect::Live),
    optional("base_worker", PROCESSOR, ChangeEffect::Live),
    optional_with_default(
        "max_workers",
        Form::Number { min: 1, max: WORKERS_MAX as u64 },
        ChangeEffect::Live,
    ),
    optional("max_worker_number", PROCESSOR, ChangeEffect::Live),
    optional("numa_node", Form::Number { min: 0, max: NUMA_NODE_MAX }, ChangeEffect::Live),
];

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
