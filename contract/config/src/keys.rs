//! Keys of the host file: names, forms of values, and effect of a change on traffic. The parser,
//! validation, plans, the command line and the reference pages derive from this table.

use crate::cluster_keys::{CLUSTER, CLUSTER_TLS};
use crate::form::{HOST_ADDRESSES_MAX, WORKERS_MAX};
use crate::key::{Effect, Key, QUEUES, defaulted, optional, required};
use crate::kind::Kind;
use crate::pf_keys::{PF, VF};
use crate::power_keys::POWER;
use crate::storage_keys::{
    DISK, DISK_NBD, DISK_QOS, DISK_VHOST_USER, NBD_BUFFER, NBD_CONNECTIONS, QOS_POLICY, STORE,
};
use crate::vm_keys::VM;
use crate::{Form, TEAM_MEMBERS_MAX};

impl Kind {
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

/// Linux supports at most 1024 NUMA nodes (`NODES_SHIFT` is at most 10).
const NUMA_NODE_MAX: u64 = 1023;
const MTU: Form = Form::Number { least: 68, most: 9216 };
/// Number of a worker, counted from 0.
const PROCESSOR: Form = Form::Number { least: 0, most: WORKERS_MAX as u64 - 1 };

const FILE: &[Key] = &[
    defaulted("host", Form::Table(Kind::Host), Effect::Live),
    optional("api", Form::Table(Kind::Api), Effect::NextStart),
    optional("console", Form::Table(Kind::Console), Effect::NextStart),
    optional("lab", Form::Table(Kind::Lab), Effect::NextStart),
    optional("power", Form::Table(Kind::Power), Effect::Live),
    optional("cluster", Form::Table(Kind::Cluster), Effect::Live),
    defaulted("switch", Form::Tables(Kind::Switch), Effect::Live),
    defaulted("uplink", Form::Tables(Kind::Uplink), Effect::Live),
    defaulted("team", Form::Tables(Kind::Team), Effect::Live),
    defaulted("nic", Form::Tables(Kind::Nic), Effect::Live),
    defaulted("store", Form::Tables(Kind::Store), Effect::Live),
    defaulted("qos_policy", Form::Tables(Kind::QosPolicy), Effect::Live),
    defaulted("disk", Form::Tables(Kind::Disk), Effect::Live),
    defaulted("vm", Form::Tables(Kind::Vm), Effect::Live),
    defaulted("pf", Form::Tables(Kind::Pf), Effect::Live),
    defaulted("node", Form::Tables(Kind::Node), Effect::Live),
];

const HOST: &[Key] = &[
    optional("name", Form::HostName, Effect::Live),
    optional("worker_cpus", Form::Cpus, Effect::Live),
    optional("floating_workers", Form::Number { least: 1, most: WORKERS_MAX as u64 }, Effect::Live),
    optional("vm_folder", Form::FilePath, Effect::NextBoot),
    optional("nbd_connections_max", NBD_CONNECTIONS, Effect::Live),
    optional("nbd_buffer_max_bytes", NBD_BUFFER, Effect::Live),
    optional("nbd_peer_connections_max", NBD_CONNECTIONS, Effect::Live),
    optional("nbd_peer_buffer_max_bytes", NBD_BUFFER, Effect::Live),
];

const API: &[Key] = &[
    required("listen", Form::SocketAddress, Effect::NextStart),
    required("tls_certificate", Form::FilePath, Effect::NextStart),
    required("tls_key", Form::FilePath, Effect::NextStart),
    required("token_file", Form::FilePath, Effect::NextStart),
    optional("metrics_token_file", Form::FilePath, Effect::NextStart),
];

const CONSOLE: &[Key] = &[
    required("listen", Form::LoopbackAddress, Effect::NextStart),
    optional("token_file", Form::FilePath, Effect::NextStart),
];

const LAB: &[Key] = &[defaulted("results", Form::FilePath, Effect::NextStart)];

const SWITCH: &[Key] = &[
    required("name", Form::Name, Effect::Identity),
    required("kind", Form::OneOf(&["private", "internal", "external"]), Effect::Live),
    optional("uplink", Form::Name, Effect::Live),
    optional("host_device", Form::Device, Effect::Live),
    defaulted("host_offload", Form::Table(Kind::Offload), Effect::Live),
    defaulted("ageing_s", Form::Number { least: 10, most: 1_000_000 }, Effect::Live),
    defaulted("iov", Form::Flag, Effect::Live),
];

const UPLINK: &[Key] = &[
    required("name", Form::Name, Effect::Identity),
    required("device", Form::Device, Effect::Replace),
    defaulted("driver", Form::OneOf(&["af_packet", "af_xdp", "tap"]), Effect::Replace),
    defaulted("queues", QUEUES, Effect::Replace),
    optional("mtu", MTU, Effect::Live),
    defaulted("host_addresses", Form::UnicastIps { most: HOST_ADDRESSES_MAX }, Effect::Live),
    defaulted("offload", Form::Table(Kind::Offload), Effect::Live),
    defaulted("vmq", Form::Table(Kind::Vmq), Effect::Live),
];

const TEAM: &[Key] = &[
    required("name", Form::Name, Effect::Identity),
    required("members", Form::Names { most: TEAM_MEMBERS_MAX }, Effect::Live),
    required("mode", Form::OneOf(&["static", "lacp", "switch-independent"]), Effect::Live),
    defaulted(
        "algorithm",
        Form::OneOf(&[
            "hyper-v-port",
            "transport-ports",
            "ip-addresses",
            "mac-addresses",
            "dynamic",
        ]),
        Effect::Live,
    ),
    optional("lacp_timer", Form::OneOf(&["slow", "fast"]), Effect::Live),
    optional("lacp_active", Form::Flag, Effect::Live),
    optional("lacp_system_priority", Form::Number { least: 0, most: 65_535 }, Effect::Live),
    defaulted("min_links", Form::Number { least: 1, most: TEAM_MEMBERS_MAX as u64 }, Effect::Live),
    optional("standby", Form::Name, Effect::Live),
    optional("primary", Form::Name, Effect::Live),
    defaulted("vmq", Form::Table(Kind::Vmq), Effect::Live),
];

const NIC: &[Key] = &[
    required("name", Form::Name, Effect::Identity),
    required("switch", Form::Name, Effect::Live),
    required("backend", Form::OneOf(&["vhost-user", "tap", "legacy"]), Effect::Replace),
    optional("socket", Form::UnixSocketPath, Effect::Replace),
    optional("mode", Form::OneOf(&["server", "client"]), Effect::Replace),
    optional("device", Form::Device, Effect::Replace),
    optional("netns", Form::Namespace, Effect::Replace),
    optional("mac", Form::UnicastMac, Effect::LiveOnTap),
    optional("vlan", Form::Vlan, Effect::Live),
    optional("trunk", Form::Vlans, Effect::Live),
    defaulted("queues", QUEUES, Effect::Replace),
    defaulted("mtu", MTU, Effect::LiveOnTap),
    defaulted("mac_spoofing", Form::Flag, Effect::Live),
    defaulted("isolated", Form::Flag, Effect::Live),
    optional("storm_limit_fps", Form::Number { least: 1, most: 10_000_000 }, Effect::Live),
    optional(
        "bandwidth_max_bps",
        Form::Number { least: 8000, most: 1_000_000_000_000_000 },
        Effect::Live,
    ),
    defaulted("learned_max", Form::Number { least: 1, most: 65_536 }, Effect::Live),
    defaulted("kernel_path", Form::Flag, Effect::Live),
    defaulted("vmq_weight", Form::Number { least: 0, most: 100 }, Effect::Live),
    defaulted("iov_weight", Form::Number { least: 0, most: 100 }, Effect::Live),
    defaulted("offload", Form::Table(Kind::Offload), Effect::Live),
];

const NODE: &[Key] = &[
    required("name", Form::Name, Effect::Identity),
    required("address", Form::HostAndPort, Effect::Live),
    required("ca_certificate", Form::FilePath, Effect::Live),
    required("token_file", Form::FilePath, Effect::Live),
    optional("server_name", Form::DnsName, Effect::Live),
];

const OFFLOAD: &[Key] = &[
    defaulted("tx_checksum", Form::Flag, Effect::Live),
    defaulted("rx_checksum", Form::Flag, Effect::Live),
    defaulted("tx_ip_checksum", Form::Flag, Effect::Live),
    defaulted("rx_ip_checksum", Form::Flag, Effect::Live),
    defaulted("segmentation", Form::Flag, Effect::Live),
    defaulted("receive_coalescing", Form::Flag, Effect::Live),
];

const VMQ: &[Key] = &[
    defaulted("enabled", Form::Flag, Effect::Live),
    defaulted("mode", Form::OneOf(&["static", "dynamic"]), Effect::Live),
    optional("base_worker", PROCESSOR, Effect::Live),
    defaulted("max_workers", Form::Number { least: 1, most: WORKERS_MAX as u64 }, Effect::Live),
    optional("max_worker_number", PROCESSOR, Effect::Live),
    optional("numa_node", Form::Number { least: 0, most: NUMA_NODE_MAX }, Effect::Live),
];

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
