//! What the agent in a VM's guest tells of it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use utoipa::ToSchema;

/// `GET /1.0/vms/{name}/guest`: what the agent in the guest tells, asked when this is. It is the
/// guest's word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmGuest {
    /// The agent's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The guest's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Its system, like `Debian GNU/Linux 12 (bookworm)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Its kernel, like `6.1.0-28-amd64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// What it takes the CPU for, like `x86_64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Its network interfaces.
    pub interfaces: Vec<VmGuestInterface>,
    /// Whether writes to its file systems are held. Most agents tell nothing else then.
    pub frozen: bool,
}

/// A network interface of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmGuestInterface {
    /// Its name in the guest.
    pub name: String,
    /// Its Ethernet address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mac: Option<MacAddr>,
    /// Its IP addresses with the lengths of their prefixes, like `192.0.2.7/24`.
    pub addresses: Vec<String>,
}

impl VmGuestInterface {
    /// An interface with these addresses and lengths of prefixes.
    pub fn new(name: String, mac: Option<MacAddr>, addresses: &[(IpAddr, u8)]) -> Self {
        let addresses = addresses.iter().map(|(address, bits)| format!("{address}/{bits}"));
        Self { name, mac, addresses: addresses.collect() }
    }
}
