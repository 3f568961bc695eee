//! A guest with an FTP server on a switch, and the world behind its uplink.

use anyhow::{Context, Result};
use suimon_rig::Rig;

use crate::loads::ftp::{FtpClients, FtpServer};
use crate::loads::lan::{Lan, LanSpec, UPLINK};

/// Everything that runs but the clients. Dropped from the top.
pub(super) struct Scene {
    server: FtpServer,
    pub(super) lan: Lan,
    address: String,
}

impl Scene {
    pub(super) fn set(rig: &Rig, files: u32, mib: u64) -> Result<Self> {
        let lan = Lan::set(rig, LanSpec { guests: 1, processors: 1, uplink: Some("") })?;
        let guest = lan.guests.first().context("no guest")?;
        let address = guest.address();
        let server = FtpServer::start(rig, &guest.namespace, files, mib)?;
        Ok(Self { server, lan, address })
    }

    /// Switches offloads of the guest's NIC and of the uplink.
    pub(super) fn switch(&self, switches: &[&str]) -> Result<()> {
        let nic = self.lan.guests.first().map_or("", |guest| guest.nic.as_str());
        for port in [nic, &format!("uplink:{UPLINK}")] {
            self.lan.daemon.ok(&[&["offload", "set", port][..], switches].concat())?;
        }
        Ok(())
    }

    pub(super) fn load(
        &mut self,
        rig: &Rig,
        clients: u32,
        bytes_per_s: Option<u64>,
    ) -> Result<FtpClients> {
        self.server.load(rig, self.lan.world()?, &self.address, clients, bytes_per_s)
    }

    /// What has arrived at the outside.
    pub(super) fn bytes(&self) -> Result<f64> {
        let path = format!("/sys/class/net/{}/statistics/rx_bytes", self.lan.far_device()?);
        self.lan.world()?.run(&["cat", &path])?.trim().parse().context("rx_bytes")
    }
}
