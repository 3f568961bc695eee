//! The host under load: every kind of back-end.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::Result;
use suimon_rig::{
    Daemon, DaemonOptions, HostedVms, Namespace, NamespaceGuest, Rig, Veth, create_certificates,
    wait_until,
};

use super::checkpoint::Watched;

/// A daemon with NICs, an uplink, disks and a VM. Fields are dropped from the top.
pub(super) struct Site {
    pub(super) daemon: Daemon,
    /// Guests `a` and `b` of the private switch and `c` of the external one.
    pub(super) guests: Vec<NamespaceGuest>,
    /// Namespace behind the uplink.
    pub(super) world: Namespace,
    pub(super) tls_port: u16,
    vms: HostedVms,
    _wire: Veth,
    pub(super) rig: Rig,
}

impl Site {
    pub(super) const WORLD: &str = "10.77.0.200";
    pub(super) const NBD_DISKS: [&str; 3] = ["d0", "d1", "d2"];
    pub(super) const BLOCK_DISKS: [&str; 2] = ["b0", "b1"];
    pub(super) const DISK_BYTES: u64 = 64 << 20;
    /// Size in bytes of the region at the beginning of a disk that several loads write.
    pub(super) const SHARED_BYTES: u64 = 32 << 20;

    pub(super) fn new() -> Result<Self> {
        let rig = Rig::new()?;
        let vms = HostedVms::new(&rig)?;
        let world = Namespace::new(&rig, "world")?;
        let (near, far) = (rig.device("up"), rig.device("far"));
        let wire = Veth::new(&near, &far, &world)?;
        world.address(&far, &format!("{}/24", Self::WORLD))?;
        let names = [("a", 1), ("b", 2), ("c", 3)];
        let guests: Result<Vec<_>> =
            names.into_iter().map(|(name, nth)| NamespaceGuest::new(&rig, name, nth)).collect();
        let guests = guests?;
        for folder in ["good", "other"] {
            create_certificates(Path::new(&rig.path(folder)));
        }
        let tls_port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        std::fs::create_dir(rig.path("store"))?;
        let host = host(&rig, &guests, &near, tls_port, &vms);
        let arguments = vec![
            "--record".to_owned(),
            rig.path("recording"),
            "--record-bytes-max".to_owned(),
            // More than is recorded in a day: the recorder stops at this size.
            (64_u64 << 30).to_string(),
        ];
        let options = DaemonOptions { arguments, ..DaemonOptions::default() };
        let daemon = Daemon::start_with(&rig, &host, &options)?;
        let site = Self { daemon, guests, world, tls_port, vms, _wire: wire, rig };
        super::network::bring_up(&site.guests)?;
        let limit = std::time::Duration::from_secs(120);
        for disk in Self::NBD_DISKS.iter().chain(&Self::BLOCK_DISKS) {
            wait_until("disks", limit, || {
                Ok(site.daemon.get(&format!("/1.0/disks/{disk}"))?["state"] == "ready")
            })?;
        }
        Ok(site)
    }

    pub(super) fn socket(&self) -> String {
        self.daemon.socket().to_owned()
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.rig.path(name)
    }

    /// Returns the rig's folder, in which programs write their files.
    pub(super) fn folder(&self) -> PathBuf {
        self.rig.folder().to_owned()
    }

    pub(super) fn watched(&mut self) -> Watched {
        let folders = [self.daemon.path("state"), self.path("store"), self.vms.folder().to_owned()];
        let process = self.daemon.process().id();
        Watched { process, folders: folders.iter().map(PathBuf::from).collect() }
    }
}

fn host(
    rig: &Rig,
    guests: &[NamespaceGuest],
    uplink: &str,
    tls_port: u16,
    vms: &HostedVms,
) -> String {
    let (nbd, folder) = (rig.path("nbd.sock"), rig.path("good"));
    let mut text = format!(
        "[host]\nvm_folder = \"{}\"\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n\
         [[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n\
         [[uplink]]\nname = \"up\"\ndevice = \"{uplink}\"\ndriver = \"af_packet\"\n\
         [[store]]\nname = \"s\"\npath = \"{}\"\ncapacity_iops = 1000000\n",
        vms.folder(),
        rig.path("store")
    );
    for (guest, switch) in guests.iter().zip(["lan", "lan", "wan"]) {
        text += &guest.nic_toml(switch, "");
    }
    for name in ["vm", "pmd0", "pmd1", "idle"] {
        let socket = rig.path(&format!("{name}.sock"));
        text += &format!(
            "[[nic]]\nname = \"{name}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
             socket = \"{socket}\"\n"
        );
    }
    text += "[[nic]]\nname = \"web\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n";
    let dynamic = "kind = \"dynamic\"\n";
    let vhost_user = |name: &str| format!("vhost_user = {{ socket = \"{}\" }}", rig.path(name));
    let server = format!("nbd = {{ socket = \"{nbd}\" }}");
    let tls = format!(
        "[disk.nbd]\nlisten = \"127.0.0.1:{tls_port}\"\n\
         tls_certificate = \"{folder}/server-cert.pem\"\ntls_key = \"{folder}/server-key.pem\"\n\
         tls_client_ca = \"{folder}/ca-cert.pem\""
    );
    for (name, format, kind, offer) in [
        ("d0", "raw", "", server.as_str()),
        ("d1", "vhdx", dynamic, &server),
        ("d2", "vhd", dynamic, &server),
        ("b0", "raw", "", &vhost_user("b0.sock")),
        ("b1", "vhdx", dynamic, &vhost_user("b1.sock")),
        ("web", "vhdx", dynamic, ""),
        ("tls", "raw", "", &tls),
    ] {
        let bytes = if name == "tls" { 4 << 20 } else { Site::DISK_BYTES };
        text += &format!(
            "[[disk]]\nname = \"{name}\"\nstore = \"s\"\nformat = \"{format}\"\n{kind}\
             size_bytes = {bytes}\n{offer}\n"
        );
    }
    text + &vms.table("web", "nics = [\"web\"]\ndisks = [\"web\"]")
}
