//! A guest with an FTP server on a switch, and the world behind its uplink.

use std::time::Duration;

use anyhow::{Context, Result};
use suimon_rig::{Daemon, LightGuest, Namespace, Rig, Veth, until};

use crate::loads::ftp::{FtpClients, FtpServer};

/// The address behind the uplink.
const FAR: &str = "10.77.0.1";
const READY_LIMIT: Duration = Duration::from_secs(20);

/// Everything that runs but the clients. Dropped from the top.
pub(super) struct Scene {
    server: FtpServer,
    pub(super) daemon: Daemon,
    guest: LightGuest,
    _wire: Veth,
    far: Namespace,
    far_device: String,
}

impl Scene {
    pub(super) fn set(rig: &Rig, files: u32, mib: u64) -> Result<Self> {
        let far = Namespace::new(rig, "far")?;
        let (near, far_device) = (rig.device("n"), rig.device("f"));
        let wire = Veth::new(&near, &far_device, &far)?;
        far.address(&far_device, &format!("{FAR}/24"))?;
        let guest = LightGuest::new(rig, "ftp", 11)?;
        let host = format!(
            "[host]\nname = \"lab\"\nfloating_processors = 1\n\
             [[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"wire\"\n\
             [[uplink]]\nname = \"wire\"\ndevice = \"{near}\"\n{}",
            guest.nic_toml("wan", "")
        );
        let daemon = Daemon::start(rig, &host)?;
        daemon.wait_up("nic", &guest.nic)?;
        guest.bring_up()?;
        until("a guest that reaches the outside", READY_LIMIT, || guest.namespace.ping(FAR))?;
        let server = FtpServer::start(rig, &guest.namespace, files, mib)?;
        Ok(Self { server, daemon, guest, _wire: wire, far, far_device })
    }

    /// Switches offloads of the guest's NIC and of the uplink.
    pub(super) fn switch(&self, switches: &[&str]) -> Result<()> {
        for port in ["ftp", "uplink:wire"] {
            self.daemon.ok(&[&["offload", "set", port][..], switches].concat())?;
        }
        Ok(())
    }

    pub(super) fn load(&mut self, rig: &Rig, clients: u32, bytes_per_s: Option<u64>) -> Result<FtpClients> {
        self.server.load(rig, &self.far, &self.guest.address(), clients, bytes_per_s)
    }

    /// What has arrived at the outside.
    pub(super) fn bytes(&self) -> Result<f64> {
        let path = format!("/sys/class/net/{}/statistics/rx_bytes", self.far_device);
        self.far.run(&["cat", &path])?.trim().parse().context("rx_bytes")
    }
}
