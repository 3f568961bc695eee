//! Programs of one Open vSwitch: its database, and the switch itself.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::run;
use crate::namespace::Namespace;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::{is_listening, wait_until};

/// Path of Debian's daemon that was built with DPDK, which is used only if it is configured.
pub(super) const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
pub(super) const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// Running switch with one bridge, `br0`, whose frames pass the daemon.
#[derive(Debug)]
pub(super) struct Server {
    // Stopped in this order.
    pub switch: Process,
    _database: Process,
    remote: String,
    /// Folder of its files and sockets.
    pub folder: String,
    /// Namespace of its network devices, which would remain if the switch is killed.
    pub namespace: Namespace,
}

impl Server {
    /// Starts the switch with these settings, such as `other_config:dpdk-init=true`.
    pub(super) fn start(rig: &Rig, settings: &[&str]) -> Result<Self> {
        let name = rig.unique("ovs");
        let folder = rig.path(&name);
        std::fs::create_dir_all(&folder)?;
        let environment = ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"]
            .map(|variable| (variable, folder.clone()));
        let socket = format!("{folder}/db.sock");
        let remote = format!("unix:{socket}");
        let configuration = format!("{folder}/conf.db");
        run(&["ovsdb-tool", "create", &configuration, SCHEMA])?;
        let mut database = Process::start_in(
            rig,
            "ovsdb",
            &["ovsdb-server", &configuration, &format!("--remote=p{remote}"), "--no-chdir"],
            &environment,
        )?;
        wait_until("database of Open vSwitch", Duration::from_secs(60), || {
            database.check_running()?;
            Ok(is_listening(&socket))
        })?;
        set(&remote, &["--no-wait", "init"])?;
        if !settings.is_empty() {
            set(&remote, &[&["--no-wait", "set", "Open_vSwitch", "."], settings].concat())?;
        }
        let namespace = Namespace::new(rig, "ovs")?;
        let arguments = ["ip", "netns", "exec", namespace.name(), DAEMON, &remote, "--no-chdir"];
        let switch = Process::start_in(rig, "ovs-vswitchd", &arguments, &environment)?;
        let server = Self { switch, _database: database, remote, folder, namespace };
        server
            .set(&["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"])
            .with_context(|| server.switch.last_words())?;
        Ok(server)
    }

    /// Runs `ovs-vsctl` and waits until the switch has applied the change.
    pub(super) fn set(&self, arguments: &[&str]) -> Result<()> {
        set(&self.remote, arguments)
    }

    /// Runs `ovs-vsctl` and returns its output.
    pub(super) fn run_vsctl(&self, arguments: &[&str]) -> Result<String> {
        run_vsctl(&self.remote, arguments)
    }

    /// Adds a port with these settings of its interface.
    pub(super) fn add_port(&self, name: &str, settings: &[&str]) -> Result<()> {
        let add = ["add-port", "br0", name, "--", "set", "Interface", name];
        self.set(&[&add[..], settings].concat())
    }
}

fn set(remote: &str, arguments: &[&str]) -> Result<()> {
    run_vsctl(remote, arguments).map(drop)
}

fn run_vsctl(remote: &str, arguments: &[&str]) -> Result<String> {
    let target = format!("--db={remote}");
    run(&[&["ovs-vsctl", "--timeout=90", &target], arguments].concat())
}
