//! The NBD servers that disks ask for, in the words of what opens them, and what they tell.

use suimon_contract::{ApiError, DiskNbd, DiskNbdClient, DiskNbdStatus, EventKind, NbdWay};
use suimon_image::Shape;
use suimon_ports::{
    ExportedDisk, NbdClient, NbdClientWay, NbdNotice, NbdPlace, NbdServerSpec, NbdTcpAccess,
    NbdTlsFiles, NbdUnixAccess,
};
use suimon_storage::Freeing;

use super::Disks;
use super::entry::DiskEntry;
use super::opening::offer_error;
use super::wanted::{WantedDisk, WantedDisks};
use crate::Edit;
use crate::checks::error_code;
use crate::control::Controller;
use crate::events::Draft;

/// The servers that offer a disk.
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
            clients: list(&nbd.tls_clients),
        });
        let addresses = list(&nbd.addresses);
        // Validation takes networks and addresses, and nothing else.
        let network = |text: &String| {
            text.parse().ok().or_else(|| Some(text.parse::<std::net::IpAddr>().ok()?.into()))
        };
        let addresses = addresses.iter().filter_map(network).collect();
        let access = NbdTcpAccess { tls, addresses, is_plaintext: nbd.plaintext };
        NbdServerSpec::Tcp { address, access }
    });
    unix.into_iter().chain(tcp).collect()
}

/// The server by which a VM's QEMU has a disk whose controller it emulates. The socket is in the
/// VM's folder, where files are of the VM's group; whoever is neither of that nor the daemon is
/// not let in.
fn emulated_spec(wanted: &WantedDisk) -> Option<NbdServerSpec> {
    let socket = wanted.emulated.clone()?;
    Some(NbdServerSpec::Unix { socket, access: NbdUnixAccess::default() })
}

fn places(nbd: Option<&DiskNbd>) -> Vec<NbdPlace> {
    nbd.map(server_specs).unwrap_or_default().iter().map(NbdServerSpec::place).collect()
}

impl Disks {
    /// What NBD servers could not let clients in by: of those that change, or of all.
    pub(crate) fn check_servers(
        &self,
        from: &WantedDisks,
        to: &WantedDisks,
        all: bool,
    ) -> Vec<ApiError> {
        let mut errors = Vec::new();
        let mut seen: Vec<NbdServerSpec> = Vec::new();
        for (name, wanted) in to {
            let Some(nbd) = &wanted.config.nbd else { continue };
            let old = from.get(name).and_then(|old| old.config.nbd.as_ref());
            if !all && old == Some(nbd) {
                continue;
            }
            for spec in server_specs(nbd) {
                if seen.contains(&spec) {
                    continue;
                }
                if let Err(error) = self.parts.devices.probe_nbd(&spec) {
                    let field = format!("nbd.{}", error.field);
                    let error = ApiError::new(error_code(error.kind), error.detail);
                    errors.push(error.about(format!("disk/{name}")).field(field));
                }
                seen.push(spec);
            }
        }
        errors
    }

    /// Who uses a disk over NBD.
    pub(crate) fn nbd_status(&self, disk: &str, clients: usize) -> DiskNbdStatus {
        let all = self.parts.devices.nbd_clients();
        let own = all.into_iter().filter(|client| client.export == disk);
        DiskNbdStatus {
            clients: u32::try_from(clients).unwrap_or(u32::MAX),
            connections: own.map(connection).collect(),
        }
    }
}

fn connection(client: NbdClient) -> DiskNbdClient {
    let way = match client.way {
        NbdClientWay::Unix => NbdWay::Unix,
        NbdClientWay::Tcp => NbdWay::Tcp,
        NbdClientWay::Tls => NbdWay::Tls,
    };
    DiskNbdClient { way, peer: client.peer }
}

impl Controller {
    /// Offers a disk in service to NBD clients, if that is wanted, the QEMU of its VM among them.
    pub(crate) fn offer_nbd(
        &self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        shape: Shape,
    ) -> Result<(), ApiError> {
        let own = wanted.config.nbd.as_ref().map(server_specs).unwrap_or_default();
        let own = own.into_iter().map(|spec| (spec, "nbd"));
        for (spec, key) in own.chain(emulated_spec(wanted).map(|spec| (spec, "controller"))) {
            let Freeing { can_discard, can_zero_fast } = entry.lock().freeing;
            let exported = ExportedDisk {
                name: entry.name.to_string(),
                bytes: shape.size,
                sector_bytes: shape.logical_sector,
                is_read_only: wanted.config.read_only,
                can_discard,
                can_zero_fast,
            };
            let exports = &self.shared.disks.exports;
            let is_vms = key == "controller";
            let offered = exports.offer(&spec, entry.id, exported, is_vms, &self.devices.notices);
            offered.map_err(|error| offer_error(entry, key, &error))?;
        }
        Ok(())
    }

    /// Offers a disk to its VM's QEMU no more.
    pub(crate) fn withdraw_emulated(&self, entry: &DiskEntry, wanted: &WantedDisk) {
        if let Some(spec) = emulated_spec(wanted) {
            self.shared.disks.exports.withdraw(&spec.place(), entry.name.as_str());
        }
    }

    /// Offers a disk nowhere any more but to its VM's QEMU.
    pub(crate) fn withdraw_nbd(&self, entry: &DiskEntry, wanted: &WantedDisk) {
        for place in places(wanted.config.nbd.as_ref()) {
            self.shared.disks.exports.withdraw(&place, entry.name.as_str());
        }
    }

    /// Offers a disk in service as it is wanted now. Where it is wanted nowhere its clients
    /// are cut off; its VM's QEMU, if it is one of them, comes again.
    pub(crate) fn change_nbd(
        &self,
        entry: &DiskEntry,
        old: Option<&DiskNbd>,
        wanted: &WantedDisk,
        shape: Shape,
    ) -> Result<(), ApiError> {
        let new = wanted.config.nbd.as_ref();
        if old == new {
            return Ok(());
        }
        self.offer_nbd(entry, wanted, shape)?;
        let kept = places(new);
        for place in places(old).iter().filter(|place| !kept.contains(place)) {
            self.shared.disks.exports.withdraw(place, entry.name.as_str());
        }
        if new.is_none() {
            self.shared.disks.parts.plane.detach_clients(entry.id);
        }
        Ok(())
    }

    /// Has NBD servers read certificates, keys, users and groups anew, when all of desired
    /// state is applied.
    pub(crate) fn reload_files(&self, edit: &Edit) -> Result<(), ApiError> {
        if !edit.is_apply() {
            return Ok(());
        }
        let failed = self.shared.disks.exports.reload();
        let errors = failed.into_iter().map(|(place, error)| {
            let at = match place {
                NbdPlace::Unix(path) => path.display().to_string(),
                NbdPlace::Tcp(address) => address.to_string(),
            };
            let text = format!("the NBD server at {at} goes on as it was: {}", error.detail);
            ApiError::new(error_code(error.kind), text).field(format!("nbd.{}", error.field))
        });
        let errors: Vec<ApiError> = errors.collect();
        if errors.is_empty() { Ok(()) } else { Err(crate::checks::first_of(errors)) }
    }
}

/// What an NBD server told, as an event.
pub(crate) fn nbd_event(notice: NbdNotice) -> Draft {
    match notice {
        NbdNotice::Refused { peer, reason } => {
            let text = format!("An NBD client ({peer}) was not let in: {reason}.");
            Draft::new(EventKind::NbdClientRefused, "host", text)
                .with("peer", peer)
                .with("reason", reason)
        }
        NbdNotice::NotOffered { disk, reason } => {
            let text = format!("The disk cannot be offered to NBD clients: {reason}.");
            let draft = Draft::new(EventKind::DiskNotOffered, format!("disk/{disk}"), text);
            draft.with("reason", reason)
        }
    }
}
