//! Section `[host]` of the host file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ByteSize;

/// `[host]`: settings of the host itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSection {
    /// Name of the host in output and events; the host name of the machine if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Logical CPUs of the workers (data-plane threads): one worker is pinned to each. If absent,
    /// `floating_workers` sets the number of workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_cpus: Option<Vec<u16>>,
    /// Number of workers that are not pinned to a CPU, used if `worker_cpus` is absent; 1 if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "floating_workers")]
    pub unpinned_workers: Option<u16>,
    /// Absolute path of the folder that contains one folder per VM with its sockets and log;
    /// `/run/suimon/vms` if absent. A running VM keeps its folder until its next start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub vm_folder: Option<PathBuf>,
    /// Maximum number of NBD connections of all disks, 1 to 16 384; 1024 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbd_connections_max: Option<u32>,
    /// Maximum buffer memory of the NBD connections of all disks in bytes, 1 MiB to 1 TiB; 1 GiB if
    /// absent. Of it, 512 KiB are reserved for each connection that `nbd_connections_max` permits,
    /// whether it exists or not; connections share the rest. At most one connection per 512 KiB is
    /// accepted. If memory is short, requests are delayed or processed in parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbd_buffer_max_bytes: Option<ByteSize>,
    /// Maximum number of NBD connections of one peer, 1 to 16 384; 512 if absent. A peer is a user
    /// of this host, an IPv4 address or an IPv6 network of 64 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbd_peer_connections_max: Option<u32>,
    /// Maximum buffer memory of the NBD connections of one peer in bytes, 1 MiB to 1 TiB; 512 MiB
    /// if absent. Of it, 512 KiB are reserved for each connection that `nbd_peer_connections_max`
    /// permits, whether it exists or not; connections share the rest. At most one connection per
    /// 512 KiB is accepted. If memory is short, requests are delayed or processed in parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nbd_peer_buffer_max_bytes: Option<ByteSize>,
}

impl HostSection {
    /// Returns the configured number of workers.
    pub fn worker_count(&self) -> usize {
        let floating = || usize::from(self.unpinned_workers.unwrap_or(1));
        self.worker_cpus.as_ref().map_or_else(floating, Vec::len)
    }
}
