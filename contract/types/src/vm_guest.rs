//! Information about a guest from the guest agent.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use utoipa::ToSchema;

/// Response of `GET /1.0/vms/{name}/guest`: information from the guest agent, requested at the time
/// of the response. The guest controls its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmGuest {
    /// Version of the guest agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Host name of the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Operating system, such as `Debian GNU/Linux 12 (bookworm)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "system")]
    pub operating_system: Option<String>,
    /// Kernel version, such as `6.1.0-28-amd64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// CPU architecture, such as `x86_64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "machine")]
    pub architecture: Option<String>,
    /// Network interfaces of the guest.
    pub interfaces: Vec<VmGuestInterface>,
    /// True if the guest's file systems are frozen. Most agents report nothing else in this state.
    pub frozen: bool,
}

/// Network interface of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmGuestInterface {
    /// Name of the interface in the guest.
    pub name: String,
    /// MAC address of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mac: Option<MacAddr>,
    /// IP addresses with prefix lengths, such as `192.0.2.7/24`.
    pub addresses: Vec<String>,
}

impl VmGuestInterface {
    /// Returns an interface with the given addresses and prefix lengths.
    pub fn new(name: String, mac: Option<MacAddr>, addresses: &[(IpAddr, u8)]) -> Self {
        let addresses = addresses.iter().map(|(address, bits)| format!("{address}/{bits}"));
        Self { name, mac, addresses: addresses.collect() }
    }
}
