//! Two hosts on one network, and a VM that is migrated between them.
#![allow(unreachable_pub, dead_code, reason = "a module of several test binaries")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{
    Daemon, GuestConsole, HostedVms, Namespace, Process, Rig, Veth, create_certificates, run,
    system_program, wait_until,
};

pub const OUTSIDE: &str = "10.75.0.254";
pub const GUEST: &str = "10.75.0.9";
pub const BRIDGE: &str = "outside";
pub const PATIENCE: Duration = Duration::from_secs(240);
pub const NAMES: [&str; 2] = ["one", "two"];
/// Load of the guest's disk: random blocks, each read and compared some time after it was written,
/// about 100 per second. fio's `rate_iops` is not used, because it would use all CPU time for its
/// waits if the machine was loaded when fio started.
pub const FIO: &str = "fio --name=v --filename=/dev/vda --rw=randwrite --bs=4k --iodepth=4 \
    --ioengine=psync --thread --verify=crc32c --verify_backlog=64 --verify_fatal=1 \
    --verify_dump=0 --time_based --runtime=3600 --thinktime=200ms --thinktime_blocks=20 --size=4m --randrepeat=0";

/// Host of a [`Site`], with its VMs.
pub struct Node {
    pub vms: HostedVms,
    pub daemon: Daemon,
}

/// Two hosts on one network, of which the first has a VM at the start.
pub struct Site {
    pub nodes: [Node; 2],
    /// Index of the node on which the VM runs.
    pub at: usize,
    pub outside: Namespace,
    _wires: [Veth; 2],
    pub rig: Rig,
}

/// Address, token and certificates in a node's `[api]`, and in the other node's `[[node]]`.
pub struct Reach {
    port: u16,
    token: String,
    certificates: String,
}

impl Reach {
    pub fn new(rig: &Rig, name: &str) -> Self {
        let certificates = rig.path(&format!("tls-{name}"));
        create_certificates(Path::new(&certificates));
        let token = rig.path(&format!("token-{name}"));
        fs::write(&token, format!("a-token-of-node-{name}\n")).unwrap();
        run(&["chmod", "600", &token]).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { port, token, certificates }
    }

    pub fn api(&self) -> String {
        let Self { port, token, certificates } = self;
        format!(
            "[api]\nlisten = \"127.0.0.1:{port}\"\ntls_certificate = \
             \"{certificates}/server-cert.pem\"\ntls_key = \"{certificates}/server-key.pem\"\n\
             token_file = \"{token}\"\n"
        )
    }

    pub fn node(&self, name: &str) -> String {
        let Self { port, token, certificates } = self;
        format!(
            "[[node]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\nserver_name = \
             \"localhost\"\nca_certificate = \"{certificates}/ca-cert.pem\"\ntoken_file = \"{token}\"\n"
        )
    }
}

impl Site {
    /// Starts two nodes with separate stores, so that a migration copies the disk.
    pub fn new() -> Self {
        Self::with("")
    }

    /// Starts two nodes that share the first node's store; the second accesses it by another path.
    pub fn with_shared_store() -> Self {
        Self::with("shared = true\n")
    }

    fn with(of_store: &str) -> Self {
        let rig = Rig::new().unwrap();
        let outside_namespace = Namespace::new(&rig, "outside").unwrap();
        outside_namespace.run(&["ip", "link", "add", BRIDGE, "type", "bridge"]).unwrap();
        outside_namespace.run(&["ip", "link", "set", BRIDGE, "up"]).unwrap();
        outside_namespace.address(BRIDGE, &format!("{OUTSIDE}/24")).unwrap();
        let near = [rig.device("n"), rig.device("n")];
        let wires = [0, 1].map(|index| {
            let far = rig.device("f");
            let wire = Veth::new(&near[index], &far, &outside_namespace).unwrap();
            outside_namespace.run(&["ip", "link", "set", &far, "master", BRIDGE]).unwrap();
            wire
        });
        let vms = HostedVms::with(&rig, &[system_program("fio").unwrap()]).unwrap();
        let all_vms = [vms.beside(&rig, NAMES[0]), vms.beside(&rig, NAMES[1])];
        let reach = NAMES.map(|name| Reach::new(&rig, name));
        let mut nodes = all_vms.into_iter().enumerate().map(|(index, vms)| {
            let store = rig.path(&format!("store-{}", NAMES[index]));
            if of_store.is_empty() || index == 0 {
                fs::create_dir_all(&store).unwrap();
            } else {
                symlink(rig.path("store-one"), &store).unwrap();
            }
            let mut text = format!(
                "[host]\nname = \"{}\"\nvm_folder = \"{}\"\n{}{}[[uplink]]\nname = \"wan\"\n\
                 device = \"{}\"\n[[switch]]\nname = \"lan\"\nkind = \"external\"\n\
                 uplink = \"wan\"\n[[store]]\nname = \"s\"\npath = \"{store}\"\n{of_store}",
                NAMES[index],
                vms.folder(),
                reach[index].api(),
                reach[1 - index].node(NAMES[1 - index]),
                near[index],
            );
            if index == 0 {
                text += &format!(
                    "[[nic]]\nname = \"web\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
                     [[qos_policy]]\nname = \"silver\"\nkind = \"dedicated\"\nmax_iops = 2000\n\
                     [[disk]]\nname = \"web\"\nstore = \"s\"\nformat = \"vhdx\"\n\
                     size_bytes = \"64 MiB\"\nqos_policy = \"silver\"\n{}",
                    vms.table_of("web", 512, "nics = [\"web\"]\ndisks = [\"web\"]\ncpus_max = 2")
                );
            }
            let daemon = Daemon::start(&rig, &text).unwrap();
            Node { vms, daemon }
        });
        let nodes = [nodes.next().unwrap(), nodes.next().unwrap()];
        Self { nodes, at: 0, outside: outside_namespace, _wires: wires, rig }
    }

    pub fn here(&self) -> &Node {
        &self.nodes[self.at]
    }

    pub fn there(&self) -> &Node {
        &self.nodes[1 - self.at]
    }

    pub fn start(&self) -> GuestConsole {
        let mut guest = self.here().vms.start(&self.here().daemon, "web").unwrap();
        guest.load("virtio_blk", "").unwrap();
        guest.address("eth0", &format!("{GUEST}/24")).unwrap();
        assert!(guest.reaches(OUTSIDE).unwrap());
        guest
    }

    /// Migrates the VM to the other node. Returns the duration.
    pub fn migrate_vm(&mut self, guest: &mut GuestConsole) -> Duration {
        let (started, target) = (Instant::now(), NAMES[1 - self.at]);
        let arguments = ["vm", "migrate", "web", "--to", target, "--with-files"];
        self.here().daemon.ok(&arguments).unwrap();
        let elapsed = started.elapsed();
        self.at = 1 - self.at;
        self.is_only_here();
        self.here().vms.follow(guest, "web").unwrap();
        elapsed
    }

    /// Migrates the VM by draining its node, requested from that node or from the other one. Checks
    /// that a drained node accepts no VM until `undrain`, even after its daemon was killed. Returns
    /// the duration.
    pub fn drain_node(&mut self, guest: &mut GuestConsole, ask_other: bool) -> Duration {
        let (own_name, other) = (NAMES[self.at], NAMES[1 - self.at]);
        let queried_node = if ask_other { self.there() } else { self.here() };
        let plan = queried_node.daemon.ok(&["node", "drain", own_name, "--dry-run"]).unwrap();
        assert_eq!(plan, format!("web migrates to {other}\n"));
        let started = Instant::now();
        let output = queried_node.daemon.ok(&["node", "drain", own_name]).unwrap();
        let elapsed = started.elapsed();
        assert_eq!(output, plan);
        self.at = 1 - self.at;
        self.is_only_here();
        self.here().vms.follow(guest, "web").unwrap();
        let other_daemon = &mut self.nodes[1 - self.at].daemon;
        other_daemon.kill();
        other_daemon.restart(&self.rig).unwrap();
        let migrate_back = ["vm", "migrate", "web", "--to", own_name];
        let refusal_text = refusal(self.here(), &migrate_back);
        assert!(
            refusal_text.contains(&format!("suimon node undrain {own_name}")),
            "{refusal_text}"
        );
        let node_status = self.here().daemon.json(&["node", "show", own_name]).unwrap();
        assert_eq!(node_status["drain"]["is_empty"], true, "{node_status}");
        self.here().daemon.ok(&["node", "undrain", own_name]).unwrap();
        let node_status = self.there().daemon.json(&["host", "show"]).unwrap();
        assert!(node_status["drain"].is_null(), "{node_status}");
        elapsed
    }

    /// Kills the daemon of the source node during memory copying, and restarts it. Returns true if
    /// the VM continues.
    ///
    /// QEMU before 10.0.4 aborts if it disables the dirty log before it has detected the closed
    /// vhost-user connections (`vhost_log_global_stop` calls `abort`). The order depends on the
    /// machine. The VM has then ended on both nodes, which its node reports.
    pub fn choose_process_to_kill(&mut self) -> bool {
        begin_slowly(self);
        let daemon = &mut self.nodes[self.at].daemon;
        daemon.kill();
        daemon.restart(&self.rig).unwrap();
        let mut has_ended = false;
        let result = wait_until("the VM to be adopted or to have ended", PATIENCE, || {
            let now = state(self.here());
            has_ended = now == "stopped" && qemus(&self.here().vms) == 0;
            Ok(has_ended || now == "running")
        });
        result.unwrap_or_else(|error| panic!("{error:#}: {}", self.describe_nodes()));
        if !has_ended {
            self.is_only_here();
            return true;
        }
        let node_outputs = self.describe_nodes();
        assert!(
            node_outputs.contains("vhost_set_features failed"),
            "the VM has ended: {node_outputs}"
        );
        eprintln!("QEMU has aborted with the daemon: {node_outputs}");
        self.is_nowhere_else();
        assert_eq!(qemus(&self.here().vms), 0);
        false
    }

    /// Returns the VM's state, the operations and the events of both nodes, for an error message.
    fn describe_nodes(&self) -> String {
        let output_of = |node: &Node, arguments: &[&str]| {
            node.daemon
                .cli(arguments)
                .map_or_else(|error| error.to_string(), |output| output.stdout)
        };
        let node_outputs = self.nodes.iter().map(|node| {
            let [vm, operations, events] =
                [["vm", "show", "web"].as_slice(), &["operation", "list"], &["event", "list"]]
                    .map(|arguments| output_of(node, arguments));
            let log = fs::read_to_string(format!("{}/web/qemu.log", node.vms.folder()));
            format!("{vm}\n{operations}\n{events}\nQEMU: {}\n", log.unwrap_or_default())
        });
        node_outputs.collect()
    }

    /// Waits until the other node has no resource or process of the VM.
    fn is_nowhere_else(&self) {
        wait_until("the removal of the VM's resources from the other node", PATIENCE, || {
            let list_of = |kind: &str| self.there().daemon.json(&[kind, "list"]);
            let is_none = |list: &Value| list.as_array().is_some_and(Vec::is_empty);
            Ok(is_none(&list_of("vm")?) && is_none(&list_of("nic")?) && is_none(&list_of("disk")?))
        })
        .unwrap();
        wait_until("no QEMU at the other node", PATIENCE, || Ok(qemus(&self.there().vms) == 0))
            .unwrap();
    }

    /// Waits until the VM runs on its node, and the other node has no resource or process of it.
    pub fn is_only_here(&self) {
        let runs = wait_until("the VM to run on its node", PATIENCE, || {
            Ok(state(self.here()) == "running")
        });
        runs.unwrap_or_else(|error| panic!("{error:#}: {}", self.describe_nodes()));
        self.is_nowhere_else();
        wait_until("one QEMU process, on the VM's node", PATIENCE, || {
            Ok((qemus(&self.there().vms), qemus(&self.here().vms)) == (0, 1))
        })
        .unwrap();
    }
}

pub fn state(node: &Node) -> String {
    let vm_status = node.daemon.json(&["vm", "show", "web"]);
    vm_status.map_or_else(|_| String::new(), |vm| vm["state"].as_str().unwrap_or("").to_owned())
}

/// Returns the number of QEMU processes that use this VM folder.
pub fn qemus(vms: &HostedVms) -> usize {
    let count_result = run(&["pgrep", "-fc", &format!("^[^ ]*qemu-system.*{}", vms.folder())]);
    count_result.map_or(0, |count| count.trim().parse().unwrap())
}

/// Load on the guest's NIC (a TCP connection and pings) and on its disk (fio).
pub struct Load {
    ping: Process,
    _server: Process,
}

impl Load {
    pub fn begin(site: &Site, guest: &mut GuestConsole) -> Self {
        let server = ["iperf3", "-s", "-1", "-B", OUTSIDE];
        let server = site.outside.start(&site.rig, "iperf3", &server).unwrap();
        wait_until("iperf3 to listen", PATIENCE, || {
            Ok(site.outside.run(&["ss", "-ltn"])?.contains(&format!("{OUTSIDE}:5201")))
        })
        .unwrap();
        let sender =
            format!("(iperf3 -c {OUTSIDE} -t 86400 -b 2M; touch /tmp/cut) >/tmp/iperf3 2>&1 &");
        guest.run(&sender).unwrap();
        guest.run(&format!("({FIO}; echo $? >/tmp/fio-ended) >/tmp/fio 2>&1 &")).unwrap();
        // A reply contains the sequence number of its request, so a missing number is a lost
        // request or reply.
        let ping = ["ping", "-i", "0.01", "-n", GUEST];
        let ping = site.outside.start(&site.rig, "ping", &ping).unwrap();
        wait_until("replies", PATIENCE, || Ok(replies(&ping.log()).len() > 100)).unwrap();
        let mut load = Self { ping, _server: server };
        wait_until("fio to write", PATIENCE, || {
            load.check(guest);
            Ok(written(guest) > 100)
        })
        .unwrap();
        load
    }

    /// Asserts that the connection and fio have not ended.
    pub fn check(&mut self, guest: &mut GuestConsole) {
        let cut = guest.run_any("[ -e /tmp/cut ]", PATIENCE).unwrap();
        assert!(!cut.is_ok(), "the connection broke: {}", guest.run("cat /tmp/iperf3").unwrap());
        let output = guest.run_any("cat /tmp/fio-ended", PATIENCE).unwrap();
        assert!(!output.is_ok(), "fio has ended: {}", guest.run("cat /tmp/fio").unwrap());
    }

    /// Ends fio, which verifies all blocks that it has written, and asserts that it found no error.
    pub fn end(mut self, guest: &mut GuestConsole) {
        self.check(guest);
        guest.run("killall -INT fio").unwrap();
        wait_until("fio to have ended", PATIENCE, || {
            Ok(guest.run_any("cat /tmp/fio-ended", PATIENCE)?.is_ok())
        })
        .unwrap();
        let output = guest.run("cat /tmp/fio").unwrap();
        assert!(output.contains("err= 0"), "{output}");
    }

    /// Returns the sequence numbers of all replies so far.
    pub fn replies(&self) -> Vec<u64> {
        replies(&self.ping.log())
    }
}

/// Returns the number of write requests of the guest's disk.
pub fn written(guest: &mut GuestConsole) -> u64 {
    let output = guest.run("grep ' vda ' /proc/diskstats").unwrap();
    output.split_whitespace().nth(7).unwrap().parse().unwrap()
}

pub fn replies(log: &str) -> Vec<u64> {
    let number = |line: &str| line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse().ok();
    log.lines().filter_map(number).collect()
}

/// Returns the number of requests without a reply, and the longest row of them.
pub fn lost(replies: &[u64]) -> (u64, u64) {
    let gaps = replies.windows(2).map(|pair| pair[1].saturating_sub(pair[0] + 1));
    (gaps.clone().sum(), gaps.max().unwrap_or(0))
}

/// Runs a command that must fail, and returns its error output.
pub fn refusal(node: &Node, arguments: &[&str]) -> String {
    let output = node.daemon.cli(arguments).unwrap();
    assert!(!output.is_ok(), "{arguments:?}: {}", output.stdout);
    output.stderr
}

/// Starts a slow migration, so that there is time for other events during memory copying. Returns
/// the operation's id.
pub fn begin_slowly(site: &Site) -> u64 {
    begin_at(site, 4 << 20)
}

/// As [`begin_slowly`], with this bandwidth in bytes per second.
pub fn begin_at(site: &Site, bandwidth: u64) -> u64 {
    let body = format!(
        "{{\"to\": \"{}\", \"bandwidth\": {bandwidth}, \"with_files\": true}}",
        NAMES[1 - site.at]
    );
    let daemon = &site.here().daemon;
    let response = daemon.http("POST", "/1.0/vms/web/migrate", Some(&body)).unwrap();
    assert_eq!(response.status, 202, "{}", response.text);
    wait_until("memory to be copied", PATIENCE, || {
        let vm = daemon.json(&["vm", "show", "web"])?;
        let migration = &vm["migration"];
        let copied = migration["memory_bytes_copied"].as_u64().unwrap_or(0);
        Ok(migration["phase"] == "copying-memory" && copied > 1 << 20)
    })
    .unwrap();
    response.json["id"].as_u64().unwrap()
}
