//! NBD servers of disks: their specifications from the configuration, their clients, and events of
//! their notices.

mod events;

use suimon_contract::{
    ApiError, DiskNbd, DiskNbdClient, DiskNbdStatus, DiskNbdTransport, HostSection, NbdPeerStatus,
    NbdStatus,
};
use suimon_image::DiskGeometry;
use suimon_image_files::DiscardSupport;
use suimon_ports::{
    ExportedDisk, NbdAddress, NbdClient, NbdLimits, NbdServerSpec, NbdTcpAccess, NbdTlsFiles,
    NbdTransport, NbdUnixAccess,
};

pub(crate) use self::events::nbd_event;
use super::Disks;
use super::entry::DiskEntry;
use super::required::{RequiredDisk, RequiredDisks};
use crate::Edit;
use crate::control::Controller;
use crate::disks::entry::disk_device_error;
use crate::errors::error_code;

/// Returns the specifications of the servers that export a disk.
pub(crate) fn server_specs(nbd: &DiskNbd) -> Vec<NbdServerSpec> {
    let list = |texts: &Option<Vec<String>>| texts.clone().unwrap_or_default();
    let unix = nbd.socket.clone().map(|socket| {
        let access = NbdUnixAccess { users: list(&nbd.users), groups: list(&nbd.groups) };
        NbdServerSpec::Unix { socket, access }
    });
    let tcp = nbd.listen.map(|address| {
        let files = nbd.tls_certificate.clone().zip(nbd.tls_key.clone());
        let tls = files.map(|(certificate, key)| NbdTlsFiles {
            certificate,
            key,
            client_ca: nbd.tls_client_ca.clone(),
            client_names: list(&nbd.tls_clients),
        });
        let addresses = list(&nbd.allowed_networks);
        // Validation accepts only networks and addresses.
        let network = |text: &String| {
            text.parse().ok().or_else(|| Some(text.parse::<std::net::IpAddr>().ok()?.into()))
        };
        let addresses = addresses.iter().filter_map(network).collect();
        let access = NbdTcpAccess {
            tls,
            allowed_networks: addresses,
            allows_plaintext: nbd.allows_plaintext,
        };
        NbdServerSpec::Tcp { address, access }
    });
    unix.into_iter().chain(tcp).collect()
}

/// Returns the limits on the connections of an export.
fn export_limits(nbd: Option<&DiskNbd>) -> NbdLimits {
    let default = DiskNbd::default();
    let nbd = nbd.unwrap_or(&default);
    NbdLimits {
        connections_max: nbd.effective_connections_max(),
        buffer_bytes_max: nbd.effective_buffer_max_bytes(),
    }
}

/// Returns the limits on the connections of the host, and of each peer.
fn host_limits(host: &HostSection) -> (NbdLimits, NbdLimits) {
    let of_host = NbdLimits {
        connections_max: host.effective_nbd_connections_max(),
        buffer_bytes_max: host.effective_nbd_buffer_max_bytes(),
    };
    let of_peer = NbdLimits {
        connections_max: host.effective_nbd_peer_connections_max(),
        buffer_bytes_max: host.effective_nbd_peer_buffer_max_bytes(),
    };
    (of_host, of_peer)
}

/// Returns the server for a VM's QEMU that emulates the disk's controller; `None` for other
/// controllers. The socket is in the VM's directory, whose files belong to the VM's group. Only
/// processes of that group and the daemon are admitted.
fn emulated_spec(required: &RequiredDisk) -> Option<NbdServerSpec> {
    let socket = required.emulator_socket.clone()?;
    Some(NbdServerSpec::Unix { socket, access: NbdUnixAccess::default() })
}

fn addresses(nbd: Option<&DiskNbd>) -> Vec<NbdAddress> {
    nbd.map(server_specs).unwrap_or_default().iter().map(NbdServerSpec::address).collect()
}

impl Disks {
    /// Checks whether NBD servers can use their files: those of changed disks, or of all disks if
    /// `is_start` is true. Returns one error per server.
    pub(crate) fn check_servers(
        &self,
        from: &RequiredDisks,
        to: &RequiredDisks,
        is_start: bool,
    ) -> Vec<ApiError> {
        let mut errors = Vec::new();
        let mut checked: Vec<NbdServerSpec> = Vec::new();
        for (name, required) in to {
            let Some(nbd) = &required.config.nbd else { continue };
            let old = from.get(name).and_then(|old| old.config.nbd.as_ref());
            if !is_start && old == Some(nbd) {
                continue;
            }
            for spec in server_specs(nbd) {
                if checked.contains(&spec) {
                    continue;
                }
                if let Err(error) = self.dependencies.devices.probe_nbd(&spec) {
                    let field = format!("nbd.{}", error.field);
                    let error = ApiError::new(error_code(error.kind), error.detail);
                    errors.push(error.with_resource(format!("disk/{name}")).with_field(field));
                }
                checked.push(spec);
            }
        }
        errors
    }

    /// Returns the NBD status of a disk. `nbd`: its configuration; `clients`: number of its NBD
    /// connections in the storage plane.
    pub(crate) fn nbd_status(
        &self,
        disk: &str,
        nbd: Option<&DiskNbd>,
        clients: usize,
    ) -> DiskNbdStatus {
        let nbd_clients = self.dependencies.devices.nbd_clients();
        let disk_clients = nbd_clients.into_iter().filter(|client| client.export == disk);
        let connections: Vec<DiskNbdClient> = disk_clients.map(connection).collect();
        let limits = export_limits(nbd);
        DiskNbdStatus {
            connection_count: u32::try_from(clients).unwrap_or(u32::MAX),
            connections_max: limits.connections_max,
            buffer_bytes: connections.iter().map(|client| client.buffer_bytes).sum(),
            buffer_max_bytes: limits.buffer_bytes_max,
            connections,
        }
    }

    /// Sets the limits on connections of NBD clients.
    pub(crate) fn set_nbd_limits(&self, host: &HostSection) {
        let (of_host, of_peer) = host_limits(host);
        self.dependencies.devices.set_nbd_limits(of_host, of_peer);
    }

    /// Returns the connections and buffer memory of NBD clients to all disks.
    pub(crate) fn host_nbd_status(&self, host: &HostSection) -> NbdStatus {
        let usage = self.dependencies.devices.nbd_usage();
        let (_, of_peer) = host_limits(host);
        let peers = usage.peers.into_iter().map(|(peer, level)| NbdPeerStatus {
            peer,
            connections: level.connections,
            buffer_bytes: level.buffer_bytes,
        });
        NbdStatus {
            connections: usage.host.connections,
            connections_max: usage.host.limits.connections_max,
            buffer_bytes: usage.host.buffer_bytes,
            buffer_max_bytes: usage.host.limits.buffer_bytes_max,
            peer_connections_max: of_peer.connections_max,
            peer_buffer_max_bytes: of_peer.buffer_bytes_max,
            buffer_shortages: usage.delayed_requests,
            peers: peers.collect(),
        }
    }
}

fn connection(client: NbdClient) -> DiskNbdClient {
    let transport = match client.transport {
        NbdTransport::Unix => DiskNbdTransport::Unix,
        NbdTransport::Tcp => DiskNbdTransport::Tcp,
        NbdTransport::Tls => DiskNbdTransport::Tls,
    };
    DiskNbdClient { transport, peer: client.peer, buffer_bytes: client.buffer_bytes }
}

impl Controller {
    /// Exports a disk in service on the configured servers, and to the QEMU of its VM if that
    /// emulates the controller.
    pub(crate) fn export_nbd(
        &self,
        entry: &DiskEntry,
        required: &RequiredDisk,
        shape: DiskGeometry,
    ) -> Result<(), ApiError> {
        let nbd_specs = required.config.nbd.as_ref().map(server_specs).unwrap_or_default();
        let nbd_specs = nbd_specs.into_iter().map(|spec| (spec, "nbd"));
        for (spec, key) in nbd_specs.chain(emulated_spec(required).map(|spec| (spec, "controller")))
        {
            let DiscardSupport { can_discard, can_zero_fast } = entry.lock().discard_support;
            let exported = ExportedDisk {
                name: entry.name.to_string(),
                size_bytes: shape.size_bytes,
                sector_bytes: shape.logical_sector_bytes,
                is_read_only: required.config.read_only,
                limits: export_limits(required.config.nbd.as_ref()),
                can_discard,
                can_zero_fast,
            };
            let exports = &self.shared.disks.exports;
            let is_vm_qemu = key == "controller";
            let offered =
                exports.add(&spec, entry.id, exported, is_vm_qemu, &self.devices.commands);
            offered.map_err(|error| disk_device_error(entry, key, &error))?;
        }
        Ok(())
    }

    /// Removes the export to the QEMU of the disk's VM.
    pub(crate) fn remove_emulated_export(&self, entry: &DiskEntry, required: &RequiredDisk) {
        if let Some(spec) = emulated_spec(required) {
            self.shared.disks.exports.remove(&spec.address(), entry.name.as_str());
        }
    }

    /// Removes the exports of a disk, except the one to the QEMU of its VM.
    pub(crate) fn remove_nbd_exports(&self, entry: &DiskEntry, required: &RequiredDisk) {
        for address in addresses(required.config.nbd.as_ref()) {
            self.shared.disks.exports.remove(&address, entry.name.as_str());
        }
    }

    /// Exports a disk in service according to the new configuration. If the disk has no NBD server
    /// any more, its clients are detached; the QEMU of its VM, if affected, reconnects.
    pub(crate) fn change_nbd(
        &self,
        entry: &DiskEntry,
        old: Option<&DiskNbd>,
        required: &RequiredDisk,
        shape: DiskGeometry,
    ) -> Result<(), ApiError> {
        let new = required.config.nbd.as_ref();
        if old == new {
            return Ok(());
        }
        self.export_nbd(entry, required, shape)?;
        let kept_addresses = addresses(new);
        for address in addresses(old).iter().filter(|address| !kept_addresses.contains(address)) {
            self.shared.disks.exports.remove(address, entry.name.as_str());
        }
        if new.is_none() {
            self.shared.disks.dependencies.plane.detach_clients(entry.id);
        }
        Ok(())
    }

    /// Reloads certificates, keys, users and groups of all NBD servers, if the edit applies the
    /// whole desired state.
    ///
    /// # Errors
    /// Returns the first server that cannot use its files; the previous rules remain in effect
    /// there.
    pub(crate) fn reload_files(&self, edit: &Edit) -> Result<(), ApiError> {
        if !edit.is_apply() {
            return Ok(());
        }
        let failed = self.shared.disks.exports.reload();
        let errors = failed.into_iter().map(|(address, error)| {
            let location = match address {
                NbdAddress::Unix(path) => path.display().to_string(),
                NbdAddress::Tcp(address) => address.to_string(),
            };
            let text =
                format!("the NBD server at {location} keeps its former settings: {}", error.detail);
            ApiError::new(error_code(error.kind), text).with_field(format!("nbd.{}", error.field))
        });
        let errors: Vec<ApiError> = errors.collect();
        if errors.is_empty() { Ok(()) } else { Err(crate::errors::summarize(errors)) }
    }
}
