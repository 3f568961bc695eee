//! Setup: tiles of namespace guests on one switch, with databases on disks of one store.

use std::fmt::Write as _;

use anyhow::Result;
use suimon_rig::{Daemon, NamespaceGuest, NbdFolder, Rig};

use super::settings::Settings;
use crate::environment::Environment;
use crate::loads::database::Database;
use crate::loads::vcpus::Vcpus;
use crate::loads::vcpus::available_cpus;
use crate::loads::web::WebServer;

/// Names of the VMs of a tile.
const KINDS: [&str; 4] = ["java", "database", "web", "idle"];
/// Number of VMs of a tile that have load and therefore dedicated CPUs.
const APPLICATIONS: usize = 3;
/// Size of a response in bytes, as in the simulator.
const FILE_BYTES: usize = 6200;
const FIRST_ADDRESS: usize = 20;
const CLIENT_ADDRESS: u8 = 10;

/// VMs of one tile. Fields are dropped in order.
pub(super) struct Tile {
    pub(super) database: Database,
    _web: WebServer,
    _files: NbdFolder,
    pub(super) java: NamespaceGuest,
    pub(super) java_vcpus: Vcpus,
    web_guest: NamespaceGuest,
    _guests: [NamespaceGuest; 2],
}

/// Setup of the measurement, except the load. Fields are dropped in order.
pub(super) struct Testbed {
    pub(super) tiles: Vec<Tile>,
    pub(super) daemon: Daemon,
    pub(super) client: NamespaceGuest,
}

impl Testbed {
    /// Returns the total size of the disks of `tiles` tiles in MiB.
    pub(super) fn disks_mib(settings: &Settings, tiles: usize) -> u64 {
        settings.disk_mib * tiles as u64
    }

    pub(super) fn set_up(
        rig: &Rig,
        settings: &Settings,
        tiles: usize,
        environment: &Environment<'_>,
    ) -> Result<Self> {
        let client = NamespaceGuest::new(rig, "client", CLIENT_ADDRESS)?;
        let mut host = String::from(
            "[host]\nname = \"lab\"\nfloating_workers = 1\n[[switch]]\nname = \"lan\"\nkind = \
             \"private\"\n",
        );
        host += &client.nic_toml("lan", "");
        let store = rig.path("store");
        std::fs::create_dir(&store)?;
        let _ = write!(host, "[[store]]\nname = \"store\"\npath = \"{store}\"\n");
        let mut guests = Vec::new();
        for tile in 0..tiles {
            let guest = |(index, kind): (usize, &str)| {
                let number = FIRST_ADDRESS + tile * KINDS.len() + index;
                NamespaceGuest::new(rig, &format!("{kind}{tile}"), u8::try_from(number)?)
            };
            let of_tile: Vec<NamespaceGuest> =
                KINDS.into_iter().enumerate().map(guest).collect::<Result<_>>()?;
            for guest in &of_tile {
                host += &guest.nic_toml("lan", "");
            }
            let (socket, mib) = (socket(rig, tile), settings.disk_mib);
            let _ = write!(
                host,
                "[[disk]]\nname = \"database{tile}\"\nstore = \"store\"\nformat = \"raw\"\nkind = \
                 \"fixed\"\nsize_bytes = \"{mib} MiB\"\nnbd = {{ socket = \"{socket}\" }}\n"
            );
            guests.push(of_tile);
        }
        let daemon = Daemon::start(rig, &host)?;
        for guest in guests.iter().flatten().chain([&client]) {
            daemon.wait_up("nic", &guest.nic)?;
            guest.bring_up()?;
        }
        let mut started_tiles = Vec::new();
        for (number, of_tile) in guests.into_iter().enumerate() {
            environment.check_not_stopped()?;
            started_tiles.push(Tile::start(rig, settings, number, of_tile)?);
        }
        Ok(Self { tiles: started_tiles, daemon, client })
    }
}

impl Tile {
    fn start(
        rig: &Rig,
        settings: &Settings,
        number: usize,
        guests: Vec<NamespaceGuest>,
    ) -> Result<Self> {
        let guests: [NamespaceGuest; 4] = guests
            .try_into()
            .map_err(|_| anyhow::anyhow!("a tile does not have {} guests", KINDS.len()))?;
        let [java, for_database, for_web, idle] = guests;
        let vcpus =
            |index| Vcpus::new(number * APPLICATIONS + index, settings.vcpus, available_cpus());
        let uri = format!("nbd+unix:///database{number}?socket={}", socket(rig, number));
        let files = NbdFolder::make(rig, &uri)?;
        let (namespace, address) = (&for_database.namespace, for_database.address());
        let database = Database::start(rig, namespace, &address, files.path(), &vcpus(1))?;
        let web = WebServer::start(rig, &for_web.namespace, &vcpus(2), FILE_BYTES)?;
        Ok(Self {
            database,
            _web: web,
            _files: files,
            java,
            java_vcpus: vcpus(0),
            web_guest: for_web,
            _guests: [for_database, idle],
        })
    }

    /// Returns the guest of the tile's web server.
    pub(super) fn web_guest(&self) -> &NamespaceGuest {
        &self.web_guest
    }
}

fn socket(rig: &Rig, tile: usize) -> String {
    rig.path(&format!("database{tile}.sock"))
}
