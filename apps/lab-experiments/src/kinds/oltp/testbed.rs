//! Setup: two namespace guests on a switch, a database in one of them, and its storage.

use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use suimon_lab_run::LocalizedText;
use suimon_rig::{
    Daemon, LoopFolder, NamespaceGuest, NbdFolder, Process, Rig, is_listening, wait_until,
};

use crate::loads::database::Database;
use crate::loads::vcpus::Vcpus;
use crate::loads::vcpus::available_cpus;
use crate::requirement::Requirement;

const READY_LIMIT: Duration = Duration::from_secs(20);

/// Storage of the database's file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DatabaseStorage {
    /// File of the host on a loop device.
    Native,
    /// File of the host, exported by the NBD server nbdkit.
    Nbdkit,
    /// Raw disk of a Suimon store, exported over NBD.
    Suimon,
}

impl DatabaseStorage {
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Nbdkit => "nbdkit",
            Self::Suimon => "suimon",
        }
    }

    pub(super) fn description(self) -> LocalizedText {
        match self {
            Self::Native => LocalizedText::new("native file", "ネイティブのファイル"),
            Self::Nbdkit => LocalizedText::new("nbdkit", "nbdkit"),
            Self::Suimon => LocalizedText::new("Suimon's disk", "Suimon のディスク"),
        }
    }
}

/// Setup of the measurement, except the load. Fields are dropped in order.
pub(super) struct Testbed {
    pub(super) database: Database,
    _files: Files,
    pub(super) daemon: Daemon,
    pub(super) client: NamespaceGuest,
    _guest: NamespaceGuest,
}

/// Mounted file system and the server of its disk.
enum Files {
    Native { _folder: LoopFolder },
    Nbdkit { _folder: NbdFolder, _server: Process },
    Suimon { _folder: NbdFolder },
}

impl Testbed {
    pub(super) fn requirements(disks: &[DatabaseStorage]) -> Vec<Requirement> {
        let mut requirements = Database::testbed_requirements();
        if disks.contains(&DatabaseStorage::Nbdkit) {
            requirements.push(Requirement::Program { name: "nbdkit", package: "nbdkit" });
        }
        requirements
    }

    pub(super) fn set_up(rig: &Rig, disk: DatabaseStorage, mib: u64, vcpus: usize) -> Result<Self> {
        let (guest, client) =
            (NamespaceGuest::new(rig, "db", 11)?, NamespaceGuest::new(rig, "client", 12)?);
        let (socket, store) = (rig.path("nbd.sock"), rig.path("store"));
        std::fs::create_dir(&store)?;
        let mut host = String::from(
            "[host]\nname = \"lab\"\nfloating_workers = 1\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n",
        );
        host += &guest.nic_toml("lan", "");
        host += &client.nic_toml("lan", "");
        if disk == DatabaseStorage::Suimon {
            host += &format!(
                "[[store]]\nname = \"store\"\npath = \"{store}\"\n[[disk]]\nname = \"db\"\nstore = \"store\"\nformat = \"raw\"\nkind = \"fixed\"\nsize_bytes = \"{mib} MiB\"\nnbd = {{ socket = \"{socket}\" }}\n"
            );
        }
        let daemon = Daemon::start(rig, &host)?;
        for guest in [&guest, &client] {
            daemon.wait_up("nic", &guest.nic)?;
            guest.bring_up()?;
        }
        let file = format!("{store}/file");
        let (files, folder) = match disk {
            DatabaseStorage::Native => {
                let folder = LoopFolder::make(rig, &file, mib << 20)?;
                let path = folder.path().to_owned();
                (Files::Native { _folder: folder }, path)
            }
            DatabaseStorage::Nbdkit => {
                suimon_rig::run(&["fallocate", "--length", &format!("{mib}MiB"), &file])?;
                let command = ["nbdkit", "--foreground", "--unix", &socket, "file", &file];
                let mut server = Process::start(rig, "nbdkit", &command)?;
                wait_until("nbdkit", READY_LIMIT, || {
                    server.check_running()?;
                    Ok(is_listening(&socket))
                })?;
                let folder = NbdFolder::make(rig, &format!("nbd+unix:///?socket={socket}"))?;
                let path = folder.path().to_owned();
                (Files::Nbdkit { _folder: folder, _server: server }, path)
            }
            DatabaseStorage::Suimon => {
                let folder = NbdFolder::make(rig, &format!("nbd+unix:///db?socket={socket}"))?;
                let path = folder.path().to_owned();
                (Files::Suimon { _folder: folder }, path)
            }
        };
        let own_vcpus = Vcpus::new(0, vcpus, available_cpus());
        let database =
            Database::start(rig, &guest.namespace, &guest.address(), &folder, &own_vcpus)?;
        Ok(Self { database, _files: files, daemon, client, _guest: guest })
    }
}
