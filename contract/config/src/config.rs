//! Desired state of a host. The same types represent the host file, request bodies of the API and
//! the state that the daemon stores.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, VlanId};
use utoipa::ToSchema;

use crate::host_section::HostSection;
use crate::socket_mode::SocketMode;
use crate::{
    ClusterConfig, DiskConfig, LAB_RESULTS_DEFAULT, Name, NodeConfig, PfConfig, PowerConfig,
    QosPolicyConfig, StoreConfig, TeamConfig, TrunkVlans, VmConfig, VmqConfig,
};

/// Desired state of one host: the content of the host file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// Settings of the host itself.
    pub host: HostSection,
    /// TCP listener of the API; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<ApiConfig>,
    /// Web console; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console: Option<ConsoleConfig>,
    /// Folder of results of experiments; the default folder if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabConfig>,
    /// Power plan of the host; CPU settings are not changed if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerConfig>,
    /// Membership of the host in a cluster; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterConfig>,
    /// Virtual switches.
    #[serde(rename = "switch", skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<SwitchConfig>,
    /// Uplinks: network devices that connect switches to the physical network.
    #[serde(rename = "uplink", skip_serializing_if = "Vec::is_empty")]
    pub uplinks: Vec<UplinkConfig>,
    /// Teams: groups of uplinks that a switch uses as one.
    #[serde(rename = "team", skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<TeamConfig>,
    /// Virtual NICs.
    #[serde(rename = "nic", skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<NicConfig>,
    /// Stores: directories and block devices that contain disks.
    #[serde(rename = "store", skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<StoreConfig>,
    /// QoS policies: limits for several disks.
    #[serde(rename = "qos_policy", skip_serializing_if = "Vec::is_empty")]
    pub qos_policies: Vec<QosPolicyConfig>,
    /// Virtual disks of VMs and NBD clients.
    #[serde(rename = "disk", skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskConfig>,
    /// VMs that the daemon can start.
    #[serde(rename = "vm", skip_serializing_if = "Vec::is_empty")]
    pub vms: Vec<VmConfig>,
    /// SR-IOV adapters (physical functions) and their virtual functions.
    #[serde(rename = "pf", skip_serializing_if = "Vec::is_empty")]
    pub pfs: Vec<PfConfig>,
    /// Other hosts, as destinations of live migration.
    #[serde(rename = "node", skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeConfig>,
}

/// `[api]`: a TCP listener in addition to the Unix socket. Requires TLS and a token. Read when the
/// daemon starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiConfig {
    /// IP address and TCP port on which the daemon serves the API with TLS, such as
    /// `192.0.2.1:8443`.
    pub listen: String,
    /// Absolute path of a PEM file with the certificate chain of the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_certificate: Option<PathBuf>,
    /// Absolute path of a PEM file with the private key of the certificate. The file must have no
    /// permissions for others (`chmod o=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tls_key: Option<PathBuf>,
    /// Absolute path of a file whose first line is the bearer token that every request over TCP
    /// must have, at least 16 characters. The file must have no permissions for others (`chmod
    /// o=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub token_file: Option<PathBuf>,
    /// Absolute path of a file whose first line is a bearer token that permits `GET /metrics` only,
    /// for example for Prometheus: at least 16 characters, and different from the token of
    /// `token_file`; no such token if absent. The file must have no permissions for others (`chmod
    /// o=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub metrics_token_file: Option<PathBuf>,
}

/// `[console]`: the web console, for browsers on this machine. Read when the daemon starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsoleConfig {
    /// Loopback address and TCP port on which the daemon serves the console, such as
    /// `127.0.0.1:7446`. Other machines connect through a tunnel, such as `ssh -L
    /// 7446:127.0.0.1:7446 HOST`.
    pub listen: String,
    /// Absolute path of a file whose first line is a token for logging in, at least 16 characters.
    /// The file must have no permissions for others (`chmod o=`). If absent, `suimon console login`
    /// is the only way to log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub token_file: Option<PathBuf>,
}

/// `[lab]`: lab runs shown by the API and the console. Read when the daemon starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabConfig {
    /// Absolute path of the folder with the results of experiments. The API writes requests into
    /// it; `suimon lab work` executes them.
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

/// Connectivity of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SwitchKind {
    /// Connects NICs with each other only.
    Private,
    /// Connects NICs and the host, which has a host NIC.
    Internal,
    /// Connects NICs and the outside network, through an uplink or team.
    External,
}

/// `[[switch]]`: a virtual switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchConfig {
    /// Name of the switch, unique among switches.
    pub name: Name,
    /// Connectivity: `private` (NICs only), `internal` (NICs and the host) or `external` (NICs and
    /// the physical network).
    pub kind: SwitchKind,
    /// Uplink or team that connects the switch to the physical network. Required if `kind` is
    /// `external`, otherwise not permitted. After a change, NICs reach the network of the new
    /// uplink; a team in LACP mode forwards no frames until its links have negotiated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Name>,
    /// Kind `internal`: name of the TAP device by which the host is connected; the name of the
    /// switch if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_device: Option<String>,
    /// Kind `internal`: offloads of the host NIC.
    #[serde(default, skip_serializing_if = "OffloadConfig::is_default")]
    pub host_offload: OffloadConfig,
    /// Time in seconds without frames from a learned MAC address after which the address is removed
    /// from the forwarding table.
    #[serde(default = "default_ageing_s")]
    pub ageing_s: u32,
    /// True if NICs of the switch may use virtual functions (VFs) of the adapter of the uplink, in
    /// addition to their path through the switch. Requires a `[[pf]]` for the device of the uplink.
    #[serde(default)]
    #[serde(rename = "iov")]
    pub iov_enabled: bool,
}

impl SwitchConfig {
    /// Returns the device name of the host NIC; `None` unless the switch is internal.
    pub fn host_device_name(&self) -> Option<&str> {
        match self.kind {
            SwitchKind::Internal => Some(self.host_device.as_deref().unwrap_or(self.name.as_str())),
            SwitchKind::Private | SwitchKind::External => None,
        }
    }
}

/// Method of frame I/O on an uplink's device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UplinkDriver {
    /// Packet socket with virtio-net headers on an existing device.
    #[default]
    AfPacket,
    /// AF_XDP sockets on an existing device, one for each of its receive queues. Frames bypass the
    /// host's network stack.
    AfXdp,
    /// TAP device, created if it does not exist.
    Tap,
}

/// `[[uplink]]`: a network device as uplink of a switch or member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UplinkConfig {
    /// Name of the uplink, unique among uplinks and teams.
    pub name: Name,
    /// Name of the network device of the host, such as `eth0`.
    pub device: String,
    /// Access to the device: `af_packet` (packet socket), `af_xdp` (AF_XDP sockets, which bypass
    /// the network stack of the host) or `tap` (TAP device, created if it does not exist).
    #[serde(default)]
    pub driver: UplinkDriver,
    /// Number of queue pairs. With driver `af_xdp`, it must equal the number of receive queues of
    /// the device (`ethtool -l`).
    #[serde(default = "default_queues")]
    pub queues: u16,
    /// Largest IP packet in bytes; the MTU of the device if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// Driver `af_xdp`: IP addresses of the host on the device. ARP and neighbour discovery for
    /// these addresses, and frames to the MAC address of the device, are passed to the host. If
    /// absent, all frames except link-local control protocols go to the switch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub host_addresses: Vec<IpAddr>,
    /// Offloads between the switch and the device.
    #[serde(default, skip_serializing_if = "OffloadConfig::is_default")]
    pub offload: OffloadConfig,
    /// Assignment of the queues of the uplink to workers. For a member of a team, `vmq` of the team
    /// applies.
    #[serde(default, skip_serializing_if = "VmqConfig::is_default")]
    pub vmq: VmqConfig,
}

/// Backend of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicBackend {
    /// virtio NIC of a VM (vhost-user).
    VhostUser,
    /// TAP device of the host.
    Tap,
    /// Intel 82574L (e1000e) emulated by the VM's QEMU, for guests without virtio drivers.
    Legacy,
}

/// `[[nic]]`: a virtual NIC on a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NicConfig {
    /// Name of the NIC, unique among NICs.
    pub name: Name,
    /// Switch that the NIC is connected to.
    pub switch: Name,
    /// Other side of the NIC: `vhost-user` (virtio NIC of a VM), `tap` (TAP device of the host or
    /// of a network namespace) or `legacy` (Intel 82574L emulated by QEMU, for guests without
    /// virtio drivers).
    pub backend: NicBackend,
    /// Backends `vhost-user` and `legacy`: absolute path of the Unix socket; a path in the folder
    /// of the VM of the NIC if absent. A NIC without `socket` that no VM uses stays disconnected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub socket: Option<PathBuf>,
    /// Backend `vhost-user`: role of the daemon on the socket, `server` (the daemon listens) or
    /// `client` (QEMU listens, and the daemon connects); `server` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SocketMode>,
    /// Backend `tap`: name of the TAP device; the name of the NIC if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Backend `tap`: network namespace of the device, as named by `ip netns`; the namespace of the
    /// daemon if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<String>,
    /// MAC address of the NIC. Unless `mac_spoofing` is true, the switch drops frames that the
    /// guest sends from another address, and frames that other ports send from this address. If
    /// absent, a TAP NIC gets a random, permanent address when it is added, and a NIC in `nics` of
    /// a VM when the VM first names it. Any other NIC without `mac` may use every source address;
    /// the first one is bound to the NIC until the guest disconnects: other NICs may not send from
    /// it. A change is rejected while the NIC is plugged into a running VM, because its guest keeps
    /// the former address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "52:54:00:12:34:56")]
    pub mac: Option<MacAddr>,
    /// Access VLAN; with `trunk`, the native VLAN, whose frames are untagged on this port. If
    /// absent, untagged frames belong to the untagged network of the switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 4094)]
    pub vlan: Option<VlanId>,
    /// VLANs and ranges of VLANs whose frames are tagged on this port: `[10, "20-29"]` in a host
    /// file, `10,20-29` on the command line. A port with `trunk` is a trunk port, otherwise an
    /// access port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trunk: Option<TrunkVlans>,
    /// Number of queue pairs.
    #[serde(default = "default_queues")]
    pub queues: u16,
    /// Largest IP packet in bytes.
    #[serde(default = "default_mtu")]
    pub mtu: u16,
    /// True if the guest may use source addresses other than `mac`, and other ports may use `mac`.
    /// If true on a NIC without `mac`, the first source address is not bound to the NIC.
    #[serde(default)]
    pub mac_spoofing: bool,
    /// True if the port exchanges no frames with other isolated ports of the switch.
    #[serde(default)]
    pub isolated: bool,
    /// Limit of flooded frames (broadcast, multicast, unknown unicast) from the port in frames per
    /// second; further ones are dropped. No limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storm_limit_fps: Option<u32>,
    /// Limit of the rate at which the guest transmits, in bits per second; frames above it stay in
    /// the queue of the guest. No limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_max_bps: Option<u64>,
    /// Largest number of MAC addresses that the switch learns on this port. Frames from further
    /// addresses are forwarded, but frames to these addresses are flooded.
    #[serde(default = "default_learned_max")]
    #[serde(rename = "learned_max")]
    pub learned_macs_max: u32,
    /// Backend `tap`: true if the kernel may forward frames between this NIC and other NICs with
    /// this key, bypassing the switch. Both NICs need the same switch, VLAN and MTU. The switch
    /// forwards all frames of a NIC that is captured, has `trunk`, `isolated` or
    /// `bandwidth_max_bps`, or has `rx_checksum` or `segmentation` disabled. Requires `netns`.
    #[serde(default)]
    #[serde(rename = "kernel_path")]
    pub uses_kernel_path: bool,
    /// Weight of each queue of the NIC in VMQ of mode `static`, which assigns queues to workers so
    /// that the sums of weights are about equal. With 0, in any mode, the base worker services the
    /// NIC.
    #[serde(default = "default_vmq_weight")]
    pub vmq_weight: u8,
    /// Priority of the NIC in the assignment of virtual functions (VFs); the highest value is
    /// served first. With 0, the NIC gets no VF. A value above 0 requires `mac`. For a NIC of a VM,
    /// `suimon nic set` also accepts the random address that the NIC has; a host file must set
    /// `mac`. If the value was 0 when the VM started or the NIC was plugged in, a higher value takes
    /// effect at the next start of the VM, or when the NIC is plugged in again. No effect on a
    /// switch without `iov`.
    #[serde(default)]
    pub iov_weight: u8,
    /// Offloads between the guest and the switch.
    #[serde(default, skip_serializing_if = "OffloadConfig::is_default")]
    pub offload: OffloadConfig,
}

impl NicConfig {
    /// Returns the device name of a TAP NIC; `None` for other backends.
    pub fn device_name(&self) -> Option<&str> {
        match self.backend {
            NicBackend::Tap => Some(self.device.as_deref().unwrap_or(self.name.as_str())),
            NicBackend::VhostUser | NicBackend::Legacy => None,
        }
    }

    /// Returns true if the backend uses a Unix socket.
    pub const fn has_socket(&self) -> bool {
        match self.backend {
            NicBackend::VhostUser | NicBackend::Legacy => true,
            NicBackend::Tap => false,
        }
    }

    /// Returns the daemon's role on the socket of a vhost-user NIC; `None` for other backends.
    pub fn socket_mode(&self) -> Option<SocketMode> {
        match self.backend {
            NicBackend::VhostUser => Some(self.mode.unwrap_or(SocketMode::Server)),
            NicBackend::Tap | NicBackend::Legacy => None,
        }
    }
}

/// `[nic.offload]`, `[uplink.offload]` and `[switch.host_offload]`: offloads of a port, as seen by
/// the user of the port's device: the guest for a NIC, the host for a host NIC, the switch for an
/// uplink's device. Each is enabled by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OffloadConfig {
    /// NIC, host NIC: true if the guest or host may send frames with a partial transport checksum,
    /// which the switch completes where the receiver requires it. Uplink: true if the switch may
    /// leave the checksum to the device.
    pub tx_checksum: bool,
    /// NIC, host NIC: true if frames to the guest or host may have a partial or already verified
    /// transport checksum. Uplink: true if a checksum that the device reports as valid is not
    /// verified again.
    pub rx_checksum: bool,
    /// No effect: sent frames always have a complete IPv4 header checksum, because virtio has no
    /// offload for it.
    pub tx_ip_checksum: bool,
    /// No effect: the receiver always verifies the IPv4 header checksum, because virtio has no
    /// offload for it.
    pub rx_ip_checksum: bool,
    /// True if TCP and UDP frames may be larger than the MTU in both directions (TSO, USO, GSO).
    pub segmentation: bool,
    /// True if received segments may be coalesced (LRO, GRO). Coalescing from an uplink to a NIC
    /// requires the key on both.
    pub receive_coalescing: bool,
}

impl OffloadConfig {
    /// Returns true if every offload has its default value.
    pub fn is_default(&self) -> bool {
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

/// Returns the MTU of a NIC whose configuration names none.
pub const fn default_mtu() -> u16 {
    1500
}

const fn default_learned_max() -> u32 {
    1024
}
