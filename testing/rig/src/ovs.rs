//! Open vSwitch with DPDK: the peer of the vhost-user path. Everything it uses is
//! in the rig's folder; an Open vSwitch that runs on the machine is not touched.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::run;
use crate::hugepages::Hugepages;
use crate::namespace::Namespace;
use crate::process::Process;
use crate::rig::Rig;
use crate::wait::until;

/// Where Debian puts the daemon that was built with DPDK.
const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// A switch with two vhost-user ports that connect to sockets others listen on.
#[derive(Debug)]
pub struct OvsDpdk {
    // Stopped in this order.
    switch: Process,
    _database: Process,
    sockets: [String; 2],
    _namespace: Namespace,
    _memory: Hugepages,
}

/// Whether it is installed.
pub fn is_installed() -> bool {
    Path::new(DAEMON).exists() && Path::new(SCHEMA).exists()
}

/// Its version, as it says.
///
/// # Errors
/// It is not installed.
pub fn version() -> Result<String> {
    let said = run(&["ovs-vsctl", "--version"])?;
    Ok(said.lines().next().unwrap_or_default().replace("ovs-vsctl (Open vSwitch)", "Open vSwitch"))
}

impl OvsDpdk {
    /// Starts it with one switching thread on CPU `switching` and its other
    /// threads on CPU `control`.
    ///
    /// # Errors
    /// It does not start; with the end of its log.
    pub fn start(rig: &Rig, switching: u16, control: u16) -> Result<Self> {
        Self::start_with(rig, switching, control, &[])
    }

    /// The same, with more settings such as `other_config:userspace-tso-enable=true`.
    ///
    /// # Errors
    /// It does not start; with the end of its log.
    pub fn start_with(rig: &Rig, switching: u16, control: u16, settings: &[&str]) -> Result<Self> {
        let memory = Hugepages::reserve(512)?;
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
        until("database of Open vSwitch", Duration::from_secs(10), || {
            database.check_running()?;
            Ok(Path::new(&socket).exists())
        })?;
        let set = |words: &[&str]| {
            let target = format!("--db={remote}");
            let mut all = vec!["ovs-vsctl", "--timeout=20", &target];
            all.extend(words);
            run(&all)
        };
        set(&["--no-wait", "init"])?;
        let cpus = [
            format!("other_config:pmd-cpu-mask={:#x}", 1u64 << switching),
            format!("other_config:dpdk-lcore-mask={:#x}", 1u64 << control),
        ];
        let mut words = vec!["--no-wait", "set", "Open_vSwitch", "."];
        words.extend(cpus.iter().map(String::as_str));
        words.extend([
            "other_config:dpdk-init=true",
            "other_config:dpdk-socket-mem=512",
            "other_config:dpdk-extra=--in-memory",
        ]);
        words.extend(settings);
        set(&words)?;
        // It makes network devices, which stay behind if it is killed: they live
        // in a namespace that goes away.
        let namespace = Namespace::new(rig, "ovs")?;
        let words = ["ip", "netns", "exec", namespace.name(), DAEMON, &remote, "--no-chdir"];
        let mut switch = Process::start_in(rig, "ovs-vswitchd", &words, &environment)?;
        let sockets = [format!("{folder}/vh0.sock"), format!("{folder}/vh1.sock")];
        set(&["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"])
            .with_context(|| switch.last_words())?;
        for (index, socket) in sockets.iter().enumerate() {
            let port = format!("vh{index}");
            set(&[
                "add-port",
                "br0",
                &port,
                "--",
                "set",
                "Interface",
                &port,
                "type=dpdkvhostuserclient",
                &format!("options:vhost-server-path={socket}"),
            ])?;
        }
        switch.check_running()?;
        Ok(Self { switch, _database: database, sockets, _namespace: namespace, _memory: memory })
    }

    /// Sockets it connects to; testpmd listens on them.
    pub fn sockets(&self) -> [String; 2] {
        self.sockets.clone()
    }

    /// The switch's process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.switch
    }
}
