//! Open vSwitch with DPDK: a polling thread moves frames between VMs' vhost-user ports.

use anyhow::{Result, ensure};

use super::server::{DAEMON, Server};
use crate::command::run;
use crate::hugepages::Hugepages;
use crate::namespace::Namespace;
use crate::process::Process;
use crate::rig::Rig;

/// Switch with two vhost-user ports that connect to listening sockets.
#[derive(Debug)]
pub struct OvsDpdk {
    server: Server,
    sockets: [String; 2],
    _memory: Hugepages,
}

impl OvsDpdk {
    /// Starts the switch with one forwarding thread on CPU `switching` and its other threads on CPU
    /// `control`.
    ///
    /// # Errors
    /// The switch does not start, with the end of its log.
    pub fn start(rig: &Rig, switching: u16, control: u16) -> Result<Self> {
        Self::start_with(rig, switching, control, &[])
    }

    /// Starts the switch with additional settings such as `other_config:userspace-tso-enable=true`.
    ///
    /// # Errors
    /// The switch does not start, with the end of its log.
    pub fn start_with(rig: &Rig, switching: u16, control: u16, settings: &[&str]) -> Result<Self> {
        let memory = Hugepages::reserve(512)?;
        let cpus = [
            format!("other_config:pmd-cpu-mask={:#x}", 1u64 << switching),
            format!("other_config:dpdk-lcore-mask={:#x}", 1u64 << control),
        ];
        let mut all_settings: Vec<&str> = cpus.iter().map(String::as_str).collect();
        all_settings.extend([
            "other_config:dpdk-init=true",
            "other_config:dpdk-socket-mem=512",
            "other_config:dpdk-extra=--in-memory",
        ]);
        all_settings.extend(settings);
        let mut server = Server::start(rig, &all_settings)?;
        let sockets = [0, 1].map(|nth| format!("{}/vh{nth}.sock", server.folder));
        for (nth, socket) in sockets.iter().enumerate() {
            let path = format!("options:vhost-server-path={socket}");
            server.add_port(&format!("vh{nth}"), &["type=dpdkvhostuserclient", &path])?;
        }
        server.switch.check_running()?;
        Ok(Self { server, sockets, _memory: memory })
    }

    /// Returns the sockets that it connects to; testpmd listens on them.
    pub fn sockets(&self) -> [String; 2] {
        self.sockets.clone()
    }

    /// Returns the namespace of the switch and of the devices that it uses with
    /// [`OvsDpdk::add_bond`].
    pub fn namespace(&self) -> &Namespace {
        &self.server.namespace
    }

    /// Bonds devices of its namespace (LACP, active, short timeout; balance-tcp) on the bridge of
    /// its other ports. It accesses them with AF_XDP sockets.
    ///
    /// # Errors
    /// The switch rejected the bond, or cannot open a device.
    pub fn add_bond(&mut self, devices: &[String]) -> Result<()> {
        let ports: Vec<String> = (0..devices.len()).map(|nth| format!("wire{nth}")).collect();
        let mut arguments = vec!["add-bond", "br0", "bond0"];
        arguments.extend(ports.iter().map(String::as_str));
        arguments.extend(["lacp=active", "bond_mode=balance-tcp", "other_config:lacp-time=fast"]);
        let reached =
            |(nth, device)| format!("options:dpdk-devargs=net_af_xdp{nth},iface={device}");
        let reached: Vec<String> = devices.iter().enumerate().map(reached).collect();
        for (port, reached) in ports.iter().zip(&reached) {
            arguments.extend(["--", "set", "Interface", port, "type=dpdk", reached]);
        }
        self.server.set(&arguments)?;
        for port in &ports {
            let error = self.server.run_vsctl(&["get", "Interface", port, "error"])?;
            ensure!(error.trim() == "[]", "{port}: {}", error.trim());
        }
        self.server.switch.check_running()
    }

    /// Returns true if the switch has learned an address.
    ///
    /// # Errors
    /// The switch does not respond.
    pub fn knows(&self, mac: &str) -> Result<bool> {
        let Server { folder, switch, .. } = &self.server;
        let program = DAEMON.rsplit('/').next().unwrap_or(DAEMON);
        let target = format!("--target={folder}/{program}.{}.ctl", switch.id());
        Ok(run(&["ovs-appctl", &target, "fdb/show", "br0"])?.contains(mac))
    }

    /// Returns the switch's process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.server.switch
    }
}
