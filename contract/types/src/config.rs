//! Desired state: what the user asked for. The same types are the host file, the
//! bodies of the API and what the daemon stores.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, VlanId};
use utoipa::ToSchema;

use crate::{
    ClusterConfig, DiskConfig, LAB_RESULTS_DEFAULT, Name, NodeConfig, PfConfig, PowerConfig,
    QosPolicyConfig, StoreConfig, TeamConfig, TrunkVlans, VmConfig, VmqConfig,
};

/// Everything desired of one host: the host file as a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// The host itself.
    pub host: HostSection,
    /// The optional TCP listener of the API; absent means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<ApiConfig>,
    /// The optional web console; absent means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console: Option<ConsoleConfig>,
    /// Where the lab keeps its runs; absent means in its usual folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabConfig>,
    /// The host's power plan; absent means that CPUs are left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerConfig>,
    /// The cluster that the host is a node of; absent means that it is by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterConfig>,
    /// Switches.
    #[serde(rename = "switch", skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<SwitchConfig>,
    /// Uplinks.
    #[serde(rename = "uplink", skip_serializing_if = "Vec::is_empty")]
    pub uplinks: Vec<UplinkConfig>,
    /// Teams of uplinks.
    #[serde(rename = "team", skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<TeamConfig>,
    /// NICs.
    #[serde(rename = "nic", skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<NicConfig>,
    /// Stores of disks.
    #[serde(rename = "store", skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<StoreConfig>,
    /// Storage QoS policies.
    #[serde(rename = "qos_policy", skip_serializing_if = "Vec::is_empty")]
    pub qos_policies: Vec<QosPolicyConfig>,
    /// Disks.
    #[serde(rename = "disk", skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskConfig>,
    /// VMs that the daemon starts.
    #[serde(rename = "vm", skip_serializing_if = "Vec::is_empty")]
    pub vms: Vec<VmConfig>,
    /// Adapters with SR-IOV.
    #[serde(rename = "pf", skip_serializing_if = "Vec::is_empty")]
    pub pfs: Vec<PfConfig>,
    /// Other nodes, to which VMs can go.
    #[serde(rename = "node", skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeConfig>,
}

/// `[host]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSection {
    /// Name of the host, for people; the machine's host name if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Logical CPUs given to the data plane, one processor each, which stays on it. If
    /// absent, `floating_processors` counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<Vec<u16>>,
    /// How many processors run on any CPU the daemon may use, 1 to 64, where `processors`
    /// names none; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_processors: Option<u16>,
    /// Absolute path of the folder in which each VM has one for its sockets and its log;
    /// `/run/suimon/vms` if absent. Read by VMs when they start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub vm_folder: Option<PathBuf>,
}

impl HostSection {
    /// How many processors there are to be.
    pub fn processor_count(&self) -> usize {
        let floating = || usize::from(self.floating_processors.unwrap_or(1));
        self.processors.as_ref().map_or_else(floating, Vec::len)
    }
}

/// `[api]`: a TCP listener beside the Unix socket. It exists only with TLS and a
/// token. Read when the daemon starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiConfig {
    /// Address and port, like `192.0.2.1:8443`.
    pub listen: String,
    /// PEM file with the server's certificate chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_certificate: Option<PathBuf>,
    /// PEM file with its private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_key: Option<PathBuf>,
    /// File whose first line is the bearer token every request must carry;
    /// at least 16 characters, not readable by others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub token_file: Option<PathBuf>,
    /// File whose first line is a bearer token for `GET /metrics` only, such as that of Prometheus; at
    /// least 16 characters, not readable by others, and not the token of `token_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub metrics_token_file: Option<PathBuf>,
}

/// `[console]`: the web console, for browsers on this machine. Read when the daemon starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsoleConfig {
    /// Loopback address and port, like `127.0.0.1:7446`. From elsewhere through a tunnel, such as
    /// `ssh -L 7446:127.0.0.1:7446 HOST`.
    pub listen: String,
    /// File whose first line is a token with which one can log in; at least 16 characters, not
    /// readable by others. Without it `suimon console` alone says how to log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub token_file: Option<PathBuf>,
}

/// `[lab]`: the runs of `suimon lab`, as the API and the console show them. Read when the daemon
/// starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabConfig {
    /// Absolute path of the folder of results, for which `suimon lab work` does what the API is
    /// asked for.
    #[serde(default = "default_results")]
    #[schema(value_type = String)]
    pub results: PathBuf,
}

impl Default for LabConfig {
    fn default() -> Self {
        Self { results: default_results() }
    }
}

fn default_results() -> PathBuf {
    LAB_RESULTS_DEFAULT.into()
}

/// Who can reach whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SwitchKind {
    /// Only the NICs among themselves.
    Private,
    /// The NICs and the host, through a host NIC.
    Internal,
    /// The NICs and the outside world, through an uplink.
    External,
}

/// `[[switch]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// Unique among switches.
    pub name: Name,
    /// Who can reach whom.
    pub kind: SwitchKind,
    /// The uplink of an external switch, or the team; only there, and always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Name>,
    /// Device name of the host NIC of an internal switch; the switch's name if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_device: Option<String>,
    /// What the host and we may leave to each other at the host NIC of an internal
    /// switch.
    #[serde(default, skip_serializing_if = "OffloadConfig::is_default")]
    pub host_offload: OffloadConfig,
    /// Seconds after which a learned address that was not seen again is
    /// forgotten, 10 to 1 000 000.
    #[serde(default = "default_ageing_s")]
    pub ageing_s: u32,
    /// Whether NICs on it may have virtual functions of the adapter that its uplink is, beside
    /// their path through the switch. Needs a `[[pf]]` that describes the uplink's device.
    #[serde(default)]
    pub iov: bool,
}

impl SwitchConfig {
    /// Device name of the host NIC; `None` unless the switch is internal.
    pub fn host_device_name(&self) -> Option<&str> {
        match self.kind {
            SwitchKind::Internal => Some(self.host_device.as_deref().unwrap_or(self.name.as_str())),
            SwitchKind::Private | SwitchKind::External => None,
        }
    }
}

/// How frames reach an uplink's device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UplinkDriver {
    /// A packet socket with virtio-net headers on an existing device.
    #[default]
    AfPacket,
    /// AF_XDP sockets on an existing device, one for each of its receive queues: frames
    /// pass by the host's network stack.
    AfXdp,
    /// A TAP device, made if it does not exist.
    Tap,
}

/// `[[uplink]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UplinkConfig {
    /// Unique among uplinks and teams.
    pub name: Name,
    /// Device name, 1 to 15 bytes.
    pub device: String,
    /// How frames reach it.
    #[serde(default)]
    pub driver: UplinkDriver,
    /// Queue pairs, 1 to 64. With `af_xdp` as many as the device receives with
    /// (`ethtool -l`).
    #[serde(default = "default_queues")]
    pub queues: u16,
    /// Largest IP packet, 68 to 9216 bytes; the device's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// With `af_xdp`: the addresses that the host has on the device. ARP and neighbour
    /// discovery that ask for them, and frames to the device's own MAC address, stay with
    /// the host. If absent, all but what concerns the link goes to the switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub host_addresses: Vec<IpAddr>,
    /// What we and the device may leave to each other.
    #[serde(default, skip_serializing_if = "OffloadConfig::is_default")]
    pub offload: OffloadConfig,
    /// Which processors work off its queues. A team's holds for its members.
    #[serde(default, skip_serializing_if = "VmqConfig::is_default")]
    pub vmq: VmqConfig,
}

/// What a NIC stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicBackend {
    /// A VM's virtio NIC.
    VhostUser,
    /// A TAP device.
    Tap,
    /// An Intel 82574L (e1000e) that a VM's QEMU emulates, for guests without drivers for
    /// virtio.
    Legacy,
}

/// Who listens on a vhost-user socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SocketMode {
    /// The daemon listens; the VM connects.
    Server,
    /// The VM listens; the daemon connects, again and again.
    Client,
}

/// `[[nic]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NicConfig {
    /// Unique among NICs.
    pub name: Name,
    /// The switch it is connected to.
    pub switch: Name,
    /// What it stands on.
    pub backend: NicBackend,
    /// vhost-user, legacy: path of the Unix socket; one in the folder of the NIC's VM if
    /// absent. A NIC without a socket that no VM has is not connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub socket: Option<PathBuf>,
    /// vhost-user: who listens; `server` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SocketMode>,
    /// tap: device name, 1 to 15 bytes; the NIC's name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// tap: network namespace the device lives in, as `ip netns` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// The NIC's address. The guest may send from no other one, and frames from it are dropped on
    /// other ports, unless `mac_spoofing` is set. If absent, a TAP NIC and a NIC of a VM get a random
    /// address when they are added, which they keep. The guest of another NIC may send from any
    /// address. Other NICs of the switch may not send from the first one that it used, until it
    /// disconnects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "52:54:00:12:34:56")]
    pub mac: Option<MacAddr>,
    /// Access VLAN; with `trunk` the native VLAN, which is untagged here. If
    /// absent, untagged frames are of the switch's untagged network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 4094)]
    pub vlan: Option<VlanId>,
    /// Makes this a trunk port that carries these VLANs tagged, such as
    /// `[10, "20-29"]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trunk: Option<TrunkVlans>,
    /// Queue pairs, 1 to 64.
    #[serde(default = "default_queues")]
    pub queues: u16,
    /// Largest IP packet, 68 to 9216 bytes.
    #[serde(default = "default_mtu")]
    pub mtu: u16,
    /// Whether the guest may send from addresses other than `mac`, and other ports from `mac`. If it is
    /// set on a NIC without an address, no source address is bound to the NIC.
    #[serde(default)]
    pub mac_spoofing: bool,
    /// Whether the port is kept apart from other isolated ports.
    #[serde(default)]
    pub isolated: bool,
    /// Flooded frames per second the port may cause (broadcast, multicast,
    /// unknown destination), 1 to 10 000 000; no limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storm_limit_fps: Option<u32>,
    /// Bits per second the guest may send, 8000 to 1 000 000 000 000 000; no
    /// limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_max_bps: Option<u64>,
    /// Addresses the switch learns on this port at most, 1 to 65 536.
    #[serde(default = "default_learned_max")]
    pub learned_max: u32,
    /// tap: whether the kernel may move frames between this NIC and others that have it
    /// set too, where nothing asks the switch to look at each of them. Needs `netns`.
    #[serde(default)]
    pub kernel_path: bool,
    /// The NIC's share of processors where VMQ assigns queues by weight, to 100. With 0 it
    /// has no queue of its own: the base processor works it off.
    #[serde(default = "default_vmq_weight")]
    pub vmq_weight: u8,
    /// How much the NIC is to have a virtual function: those of higher weight get one first,
    /// 1 to 100. With 0 it has none. Needs `mac`; on a switch without `iov` it
    /// has no effect.
    #[serde(default)]
    pub iov_weight: u8,
    /// What the guest and we may leave to each other.
    #[serde(default, skip_serializing_if = "OffloadConfig::is_default")]
    pub offload: OffloadConfig,
}

impl NicConfig {
    /// Device name of a TAP NIC; `None` for other backends.
    pub fn device_name(&self) -> Option<&str> {
        match self.backend {
            NicBackend::Tap => Some(self.device.as_deref().unwrap_or(self.name.as_str())),
            NicBackend::VhostUser | NicBackend::Legacy => None,
        }
    }

    /// Whether it stands on a Unix socket.
    pub const fn has_socket(&self) -> bool {
        match self.backend {
            NicBackend::VhostUser | NicBackend::Legacy => true,
            NicBackend::Tap => false,
        }
    }

    /// Who listens on the socket of a vhost-user NIC; `None` for other backends.
    pub fn socket_mode(&self) -> Option<SocketMode> {
        match self.backend {
            NicBackend::VhostUser => Some(self.mode.unwrap_or(SocketMode::Server)),
            NicBackend::Tap | NicBackend::Legacy => None,
        }
    }
}

/// `[nic.offload]`, `[uplink.offload]` and `[switch.host_offload]`: the switches of
/// a port's offloads, seen from who uses the port: the guest uses its NIC, the host its
/// host NIC, we use an uplink's device. All on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OffloadConfig {
    /// What is sent may lack its transport checksum: the guest leaves it to us, and we
    /// leave it to an uplink's device.
    pub tx_checksum: bool,
    /// What is received may lack its transport checksum, and an uplink's device is
    /// believed where it says that one is good.
    pub rx_checksum: bool,
    /// What is sent may lack its IPv4 header checksum; no virtio NIC offloads it.
    pub tx_ip_checksum: bool,
    /// What is received may have an unchecked IPv4 header checksum; no virtio NIC
    /// offloads it.
    pub rx_ip_checksum: bool,
    /// Large TCP and UDP frames both ways.
    pub segmentation: bool,
    /// Received segments may be joined; both the uplink's switch and the NIC's must be
    /// on.
    pub receive_coalescing: bool,
}

impl OffloadConfig {
    /// Whether all of them stand as they do where nothing is written.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for OffloadConfig {
    fn default() -> Self {
        Self {
            tx_checksum: true,
            rx_checksum: true,
            tx_ip_checksum: true,
            rx_ip_checksum: true,
            segmentation: true,
            receive_coalescing: true,
        }
    }
}

const fn default_ageing_s() -> u32 {
    300
}

const fn default_queues() -> u16 {
    1
}

const fn default_vmq_weight() -> u8 {
    100
}

pub(crate) const fn default_mtu() -> u16 {
    1500
}

const fn default_learned_max() -> u32 {
    1024
}
