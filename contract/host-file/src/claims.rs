//! Exclusive claims: devices, sockets, files, addresses and other objects that at most one resource
//! may use.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use suimon_frame::MacAddr;

use crate::finding::FindingLocation;
use crate::{HostConfig, Name, ResourceKind, StoreConfig};

/// Object that at most one resource may use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExclusiveObject {
    Uplink(Name),
    Team(Name),
    Device { netns: Option<String>, name: String },
    Adapter(String),
    Socket(PathBuf),
    Listener(SocketAddr),
    Store(PathBuf),
    BlockDevice(Name),
    File(PathBuf),
    Nic(Name),
    Disk(Name),
    Address { switch: Name, mac: MacAddr },
    Node(String),
}

/// Exclusive claim, the resource that makes it, and the key that names the claimed object.
pub(crate) struct ExclusiveClaim {
    pub(crate) object: ExclusiveObject,
    pub(crate) location: FindingLocation,
    pub(crate) field: &'static str,
}

/// Returns the claims on the TCP addresses of the API and the console. Texts that are not addresses
/// are skipped; another check reports them.
fn listeners(config: &HostConfig) -> impl Iterator<Item = ExclusiveClaim> {
    let api = config.api.as_ref().map(|api| (ResourceKind::Api, &api.listen));
    let console = config.console.as_ref().map(|console| (ResourceKind::Console, &console.listen));
    api.into_iter().chain(console).filter_map(|(kind, listen)| {
        let claim = ExclusiveObject::Listener(listen.parse().ok()?);
        Some(ExclusiveClaim {
            object: claim,
            location: FindingLocation::new(kind, 0),
            field: "listen",
        })
    })
}

/// Returns the exclusive claims of all objects in a host's configuration, in the order of the file:
/// API, console, uplinks, teams, switches, NICs, stores, disks, VMs, adapters, other nodes.
pub(crate) fn exclusive_claims(config: &HostConfig) -> Vec<ExclusiveClaim> {
    let mut claims = Vec::new();
    claims.extend(listeners(config));
    for (index, uplink) in config.uplinks.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Uplink, index);
        claims.push(ExclusiveClaim {
            object: device(None, &uplink.device),
            location,
            field: "device",
        });
    }
    for (index, team) in config.teams.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Team, index);
        // A member listed twice makes one claim.
        let members: BTreeSet<&Name> = team.members.iter().collect();
        claims.extend(members.into_iter().map(|member| ExclusiveClaim {
            object: ExclusiveObject::Uplink(member.clone()),
            location,
            field: "members",
        }));
    }
    let teams: BTreeSet<&Name> = config.teams.iter().map(|team| &team.name).collect();
    for (index, switch) in config.switches.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Switch, index);
        if let Some(uplink) = &switch.uplink {
            let claim = match teams.contains(uplink) {
                true => ExclusiveObject::Team(uplink.clone()),
                false => ExclusiveObject::Uplink(uplink.clone()),
            };
            claims.push(ExclusiveClaim { object: claim, location, field: "uplink" });
        }
        if let Some(name) = switch.host_device_name() {
            claims.push(ExclusiveClaim {
                object: device(None, name),
                location,
                field: "host_device",
            });
        }
    }
    claims.extend(claims_of_nics(config));
    claims.extend(claims_of_storage(config));
    claims.extend(claims_of_vms(config));
    for (index, pf) in config.pfs.iter().enumerate() {
        let (claim, location) = (
            ExclusiveObject::Adapter(pf.device.clone()),
            FindingLocation::new(ResourceKind::Pf, index),
        );
        claims.push(ExclusiveClaim { object: claim, location, field: "device" });
    }
    for (index, node) in config.nodes.iter().enumerate() {
        // Host names are case-insensitive (RFC 4343).
        let claim = ExclusiveObject::Node(node.address.to_ascii_lowercase());
        claims.push(ExclusiveClaim {
            object: claim,
            location: FindingLocation::new(ResourceKind::Node, index),
            field: "address",
        });
    }
    claims
}

/// Returns the claim on a network device in a namespace; `None`: the namespace of the host.
fn device(netns: Option<&String>, name: &str) -> ExclusiveObject {
    ExclusiveObject::Device { netns: netns.cloned(), name: name.to_owned() }
}

fn claims_of_nics(config: &HostConfig) -> Vec<ExclusiveClaim> {
    let mut claims = Vec::new();
    for (index, nic) in config.nics.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Nic, index);
        if let Some(name) = nic.device_name() {
            let claim = device(nic.netns.as_ref(), name);
            claims.push(ExclusiveClaim { object: claim, location, field: "device" });
        }
        if let Some(socket) = config.socket_of_nic(nic) {
            claims.push(ExclusiveClaim {
                object: ExclusiveObject::Socket(socket),
                location,
                field: "socket",
            });
        }
        if let Some(mac) = nic.mac {
            let claim = ExclusiveObject::Address { switch: nic.switch.clone(), mac };
            claims.push(ExclusiveClaim { object: claim, location, field: "mac" });
        }
    }
    claims
}

fn claims_of_vms(config: &HostConfig) -> Vec<ExclusiveClaim> {
    let mut claims = Vec::new();
    for (index, vm) in config.vms.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Vm, index);
        // A NIC or disk listed twice makes one claim.
        let nics: BTreeSet<&Name> = vm.nics.iter().collect();
        let disks: BTreeSet<&Name> = vm.disks.iter().collect();
        let nics = nics.into_iter().map(|nic| (ExclusiveObject::Nic(nic.clone()), "nics"));
        let disks = disks.into_iter().map(|disk| (ExclusiveObject::Disk(disk.clone()), "disks"));
        claims.extend(nics.chain(disks).map(|(claim, field)| ExclusiveClaim {
            object: claim,
            location,
            field,
        }));
    }
    claims
}

fn claims_of_storage(config: &HostConfig) -> Vec<ExclusiveClaim> {
    let mut claims = Vec::new();
    let mut stores: BTreeMap<&Name, &StoreConfig> = BTreeMap::new();
    for (index, store) in config.stores.iter().enumerate() {
        stores.insert(&store.name, store);
        let location = FindingLocation::new(ResourceKind::Store, index);
        claims.push(ExclusiveClaim {
            object: ExclusiveObject::Store(store.path.clone()),
            location,
            field: "path",
        });
    }
    // Exports of one NBD server share its socket or address, which is claimed once.
    let mut servers: BTreeSet<ExclusiveObject> = BTreeSet::new();
    for (index, disk) in config.disks.iter().enumerate() {
        let location = FindingLocation::new(ResourceKind::Disk, index);
        let mut claim =
            |claim, field| claims.push(ExclusiveClaim { object: claim, location, field });
        match (disk.effective_file(), stores.get(&disk.store)) {
            (None, _) => claim(ExclusiveObject::BlockDevice(disk.store.clone()), "store"),
            (Some(_), Some(store)) => claim(ExclusiveObject::File(disk.path_in(store)), "file"),
            // Reference checks report the missing store.
            (Some(_), None) => {}
        }
        if let Some(vhost_user) = config.vhost_user_of_disk(disk) {
            claim(ExclusiveObject::Socket(vhost_user.socket), "vhost_user.socket");
        }
        if let Some(socket) = config.emulated_disk_socket(disk) {
            claim(ExclusiveObject::Socket(socket), "controller");
        }
        let Some(nbd) = &disk.nbd else { continue };
        let socket = nbd.socket.clone().map(|path| (ExclusiveObject::Socket(path), "nbd.socket"));
        let listener = nbd.listen.map(|address| (ExclusiveObject::Listener(address), "nbd.listen"));
        for (of_server, field) in socket.into_iter().chain(listener) {
            if servers.insert(of_server.clone()) {
                claim(of_server, field);
            }
        }
    }
    claims
}

impl fmt::Display for ExclusiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Team(name) => write!(f, "team `{name}`"),
            Self::Uplink(name) => write!(f, "uplink `{name}`"),
            Self::Nic(name) => write!(f, "NIC `{name}`"),
            Self::Disk(name) => write!(f, "disk `{name}`"),
            Self::Device { netns: None, name } => write!(f, "device `{name}`"),
            Self::Device { netns: Some(netns), name } => {
                write!(f, "device `{name}` in namespace `{netns}`")
            }
            Self::Adapter(device) => write!(f, "adapter `{device}`"),
            Self::Socket(path) => write!(f, "socket `{}`", path.display()),
            Self::Listener(address) => write!(f, "listen address {address}"),
            Self::Store(path) => write!(f, "path `{}`", path.display()),
            Self::BlockDevice(store) => write!(f, "the block device of store `{store}`"),
            Self::File(path) => write!(f, "file `{}`", path.display()),
            Self::Node(address) => write!(f, "node address {address}"),
            Self::Address { switch, mac } => write!(f, "MAC address `{mac}` on switch `{switch}`"),
        }
    }
}
