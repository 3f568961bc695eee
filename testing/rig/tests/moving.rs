//! A VM that goes from one daemon to another and back while its guest sends over its NIC and
//! writes to its disk. `SUIMON_VM_MOVES` says how often; 4 times if it is not set.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{
    Daemon, HostedGuest, HostedVms, Namespace, Process, Rig, Veth, authority, run, system_program,
    until,
};

const OUTSIDE: &str = "10.75.0.254";
const GUEST: &str = "10.75.0.9";
const BRIDGE: &str = "outside";
const PATIENCE: Duration = Duration::from_secs(120);
const MOVES: usize = 4;
const NAMES: [&str; 2] = ["one", "two"];
/// Random blocks, each read again and compared some time after it was written.
const FIO: &str = "fio --name=v --filename=/dev/vda --rw=randwrite --bs=4k --iodepth=4 \
    --ioengine=psync --thread --verify=crc32c --verify_backlog=64 --verify_fatal=1 \
    --verify_dump=0 --time_based --runtime=3600 --rate_iops=100 --size=48m --randrepeat=0";

/// A host, as far as another one sees it.
struct Node {
    vms: HostedVms,
    daemon: Daemon,
}

/// Two hosts on one network, of which the first has a VM.
struct Site {
    nodes: [Node; 2],
    /// Where the VM is.
    at: usize,
    outside: Namespace,
    _wires: [Veth; 2],
    rig: Rig,
}

/// What `[api]` and the other's `[[node]]` have.
struct Reach {
    port: u16,
    token: String,
    certificates: String,
}

impl Reach {
    fn new(rig: &Rig, name: &str) -> Self {
        let certificates = rig.path(&format!("tls-{name}"));
        authority(Path::new(&certificates));
        let token = rig.path(&format!("token-{name}"));
        fs::write(&token, format!("a-token-of-node-{name}\n")).unwrap();
        run(&["chmod", "600", &token]).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { port, token, certificates }
    }

    fn api(&self) -> String {
        let Self { port, token, certificates } = self;
        format!(
            "[api]\nlisten = \"127.0.0.1:{port}\"\ntls_certificate = \
             \"{certificates}/server-cert.pem\"\ntls_key = \"{certificates}/server-key.pem\"\n\
             token_file = \"{token}\"\n"
        )
    }

    fn node(&self, name: &str) -> String {
        let Self { port, token, certificates } = self;
        format!(
            "[[node]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\nserver_name = \
             \"localhost\"\nauthority = \"{certificates}/ca-cert.pem\"\ntoken_file = \"{token}\"\n"
        )
    }
}

impl Site {
    fn new() -> Self {
        let rig = Rig::new().unwrap();
        let outside = Namespace::new(&rig, "outside").unwrap();
        outside.run(&["ip", "link", "add", BRIDGE, "type", "bridge"]).unwrap();
        outside.run(&["ip", "link", "set", BRIDGE, "up"]).unwrap();
        outside.address(BRIDGE, &format!("{OUTSIDE}/24")).unwrap();
        let near = [rig.device("n"), rig.device("n")];
        let wires = [0, 1].map(|at| {
            let far = rig.device("f");
            let wire = Veth::new(&near[at], &far, &outside).unwrap();
            outside.run(&["ip", "link", "set", &far, "master", BRIDGE]).unwrap();
            wire
        });
        let vms = HostedVms::with(&rig, &[system_program("fio").unwrap()]).unwrap();
        let all_vms = [vms.beside(&rig, NAMES[0]), vms.beside(&rig, NAMES[1])];
        let reach = NAMES.map(|name| Reach::new(&rig, name));
        let mut nodes = all_vms.into_iter().enumerate().map(|(at, vms)| {
            let store = rig.path(&format!("store-{}", NAMES[at]));
            fs::create_dir_all(&store).unwrap();
            let mut text = format!(
                "[host]\nname = \"{}\"\nvm_folder = \"{}\"\n{}{}[[uplink]]\nname = \"wan\"\n\
                 device = \"{}\"\n[[switch]]\nname = \"lan\"\nkind = \"external\"\n\
                 uplink = \"wan\"\n[[store]]\nname = \"s\"\npath = \"{store}\"\n",
                NAMES[at],
                vms.folder(),
                reach[at].api(),
                reach[1 - at].node(NAMES[1 - at]),
                near[at],
            );
            if at == 0 {
                text += &format!(
                    "[[nic]]\nname = \"web\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
                     [[qos_policy]]\nname = \"silver\"\nkind = \"dedicated\"\nmax_iops = 2000\n\
                     [[disk]]\nname = \"web\"\nstore = \"s\"\nformat = \"vhdx\"\n\
                     size_bytes = \"64 MiB\"\nqos_policy = \"silver\"\n{}",
                    vms.table("web", "nics = [\"web\"]\ndisks = [\"web\"]\ncpus_max = 2")
                );
            }
            let daemon = Daemon::start(&rig, &text).unwrap();
            Node { vms, daemon }
        });
        let nodes = [nodes.next().unwrap(), nodes.next().unwrap()];
        Self { nodes, at: 0, outside, _wires: wires, rig }
    }

    fn here(&self) -> &Node {
        &self.nodes[self.at]
    }

    fn there(&self) -> &Node {
        &self.nodes[1 - self.at]
    }

    fn start(&self) -> HostedGuest {
        let mut guest = self.here().vms.start(&self.here().daemon, "web").unwrap();
        guest.load("virtio_blk", "").unwrap();
        guest.address("eth0", &format!("{GUEST}/24")).unwrap();
        assert!(guest.reaches(OUTSIDE).unwrap());
        guest
    }

    /// Moves the VM to the other node.
    fn move_it(&mut self, guest: &mut HostedGuest) -> Duration {
        let (began, to) = (Instant::now(), NAMES[1 - self.at]);
        let words = ["vm", "migrate", "web", "--to", to, "--with-files"];
        self.here().daemon.ok(&words).unwrap();
        let took = began.elapsed();
        self.at = 1 - self.at;
        self.is_only_here();
        self.here().vms.follow(guest, "web").unwrap();
        took
    }

    /// The VM runs where it is, and of it nothing is at the other node.
    fn is_only_here(&self) {
        until("the VM to run where it is", PATIENCE, || Ok(state(self.here()) == "running"))
            .unwrap();
        until("nothing of it to be at the other node", PATIENCE, || {
            let of = |kind: &str| self.there().daemon.json(&[kind, "list"]);
            let is_none = |list: &Value| list.as_array().is_some_and(Vec::is_empty);
            Ok(is_none(&of("vm")?) && is_none(&of("nic")?) && is_none(&of("disk")?))
        })
        .unwrap();
        assert_eq!(qemus(&self.there().vms), 0);
        assert_eq!(qemus(&self.here().vms), 1);
    }
}

fn state(node: &Node) -> String {
    let shown = node.daemon.json(&["vm", "show", "web"]);
    shown.map_or_else(|_| String::new(), |vm| vm["state"].as_str().unwrap_or("").to_owned())
}

/// Processes of QEMU that have something in the folder.
fn qemus(vms: &HostedVms) -> usize {
    let found = run(&["pgrep", "-fc", &format!("^[^ ]*qemu-system.*{}", vms.folder())]);
    found.map_or(0, |count| count.trim().parse().unwrap())
}

/// Load on the guest's NIC and disk.
struct Load {
    ping: Process,
    _server: Process,
}

impl Load {
    fn begin(site: &Site, guest: &mut HostedGuest) -> Self {
        let server = ["iperf3", "-s", "-1", "-B", OUTSIDE];
        let server = site.outside.start(&site.rig, "iperf3", &server).unwrap();
        let sender = format!(
            "(sleep 1; iperf3 -c {OUTSIDE} -t 3600 -b 20M; touch /tmp/cut) >/tmp/iperf3 2>&1 &"
        );
        guest.run(&sender).unwrap();
        guest.run(&format!("({FIO}; echo $? >/tmp/fio-ended) >/tmp/fio 2>&1 &")).unwrap();
        // A reply has its number; one that does not come was lost.
        let ping = ["ping", "-i", "0.01", "-n", GUEST];
        let ping = site.outside.start(&site.rig, "ping", &ping).unwrap();
        until("replies", PATIENCE, || Ok(replies(&ping.log()).len() > 100)).unwrap();
        Self { ping, _server: server }
    }

    /// Neither has heard of anything.
    fn check(&mut self, guest: &mut HostedGuest) {
        let cut = guest.run_any("[ -e /tmp/cut ]", PATIENCE).unwrap();
        assert!(!cut.is_ok(), "the connection broke: {}", guest.run("cat /tmp/iperf3").unwrap());
        let ended = guest.run_any("cat /tmp/fio-ended", PATIENCE).unwrap();
        assert!(!ended.is_ok(), "fio has ended: {}", guest.run("cat /tmp/fio").unwrap());
    }

    /// fio reads all that it has written once more, and finds it.
    fn end(mut self, guest: &mut HostedGuest) {
        self.check(guest);
        guest.run("killall -INT fio").unwrap();
        until("fio to have ended", PATIENCE, || {
            Ok(guest.run_any("cat /tmp/fio-ended", PATIENCE)?.is_ok())
        })
        .unwrap();
        let said = guest.run("cat /tmp/fio").unwrap();
        assert!(said.contains("err= 0"), "{said}");
        let written = guest.run("awk '$3 == \"vda\" { print $8 }' /proc/diskstats").unwrap();
        assert!(written.trim().parse::<u64>().unwrap() > 100, "{written} writes");
    }

    /// The numbers of all replies so far.
    fn replies(&self) -> Vec<u64> {
        replies(&self.ping.log())
    }
}

fn replies(log: &str) -> Vec<u64> {
    let number = |line: &str| line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse().ok();
    log.lines().filter_map(number).collect()
}

/// Requests without a reply between these counts of replies: how many, and the most in a row.
fn lost(replies: &[u64]) -> (u64, u64) {
    let gaps = replies.windows(2).map(|pair| pair[1].saturating_sub(pair[0] + 1));
    (gaps.clone().sum(), gaps.max().unwrap_or(0))
}

#[test]
fn a_vm_goes_there_and_back_while_it_sends_and_writes() {
    let moves = std::env::var("SUIMON_VM_MOVES").map_or(MOVES, |text| text.parse().unwrap());
    let mut site = Site::new();
    let mut guest = site.start();
    let mut load = Load::begin(&site, &mut guest);
    let (mut totals, mut stood, mut all_lost) = (Vec::new(), Vec::new(), 0);
    for _ in 0..moves {
        let before = load.replies().len();
        totals.push(site.move_it(&mut guest));
        let after = load.replies().len();
        until("replies", PATIENCE, || Ok(load.replies().len() > after + 50)).unwrap();
        let (lost, in_a_row) = lost(&load.replies()[before..]);
        all_lost += lost;
        stood.push(Duration::from_millis(10) * u32::try_from(in_a_row).unwrap());
        load.check(&mut guest);
        // What was promised of it came with it.
        let disk = site.here().daemon.json(&["disk", "show", "web"]).unwrap();
        assert_eq!(disk["config"]["qos_policy"], "silver");
    }
    load.end(&mut guest);
    for (what, times) in [("in all", &mut totals), ("without a reply", &mut stood)] {
        times.sort_unstable();
        let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
        eprintln!("{moves} moves, {what}: median {median:?}, longest {longest:?}");
    }
    eprintln!("{all_lost} requests, one in 10 ms, had no reply");
}

/// What a command says that is to fail.
fn refusal(node: &Node, words: &[&str]) -> String {
    let output = node.daemon.cli(words).unwrap();
    assert!(!output.is_ok(), "{words:?}: {}", output.stdout);
    output.stderr
}

#[test]
fn what_cannot_go_is_refused_before_anything_changes() {
    let mut site = Site::new();
    let to_two = ["vm", "migrate", "web", "--to", "two"];
    assert!(refusal(site.here(), &to_two).contains("suimon vm start web"));
    let mut guest = site.start();
    let plan = site.here().daemon.ok(&["vm", "migrate", "web", "--to", "two", "--dry-run"]);
    assert!(plan.unwrap().contains("web"));
    assert!(refusal(site.here(), &["vm", "migrate", "web", "--to", "three"]).contains("three"));

    // A file that somebody has there is not written over.
    let file = site.rig.path("store-two/web.vhdx");
    fs::write(&file, "somebody's").unwrap();
    assert!(refusal(site.here(), &to_two).contains("there is a file of that name"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "somebody's");
    fs::remove_file(&file).unwrap();

    // The other node has no such switch, no room, another token, or is not there.
    let two = &mut site.nodes[1].daemon;
    two.ok(&["switch", "delete", "lan"]).unwrap();
    assert!(refusal(&site.nodes[0], &to_two).contains("lan"));
    let lan = ["switch", "create", "lan", "--kind", "external", "--uplink", "wan"];
    site.nodes[1].daemon.ok(&lan).unwrap();
    site.nodes[0].daemon.ok(&["node", "set", "two", "--server-name", "elsewhere"]).unwrap();
    assert!(refusal(&site.nodes[0], &to_two).contains("certificate"));
    site.nodes[0].daemon.ok(&["node", "set", "two", "--server-name", "localhost"]).unwrap();
    let token = site.rig.path("token-two");
    let own = fs::read_to_string(&token).unwrap();
    fs::write(&token, "another-token-than-that\n").unwrap();
    let refused = refusal(&site.nodes[0], &to_two);
    assert!(refused.contains("token"), "{refused}");
    fs::write(&token, own).unwrap();
    site.nodes[1].daemon.kill();
    assert!(refusal(&site.nodes[0], &to_two).contains("does not answer"));
    site.nodes[1].daemon.restart(&site.rig).unwrap();
    site.is_only_here();
    site.move_it(&mut guest);
    assert!(guest.reaches(OUTSIDE).unwrap());
}

/// Begins to move the VM so slowly that there is time for what happens meanwhile.
fn begin_slowly(site: &Site, guest: &mut HostedGuest) -> u64 {
    // Memory that is not all the same, to be sent.
    guest
        .run(
            "dd if=/dev/urandom of=/dev/shm/noise bs=1M count=48 2>/dev/null || \
               dd if=/dev/urandom of=/tmp/noise bs=1M count=48 2>/dev/null",
        )
        .unwrap();
    let body = format!(
        "{{\"to\": \"{}\", \"bandwidth\": 4194304, \"with_files\": true}}",
        NAMES[1 - site.at]
    );
    let daemon = &site.here().daemon;
    let began = daemon.http("POST", "/1.0/vms/web/migrate", Some(&body)).unwrap();
    assert_eq!(began.status, 202, "{}", began.text);
    until("memory to be copied", PATIENCE, || {
        let vm = daemon.json(&["vm", "show", "web"])?;
        let moving = &vm["migration"];
        let sent = moving["memory_bytes_copied"].as_u64().unwrap_or(0);
        Ok(moving["phase"] == "copying-memory" && sent > 1 << 20)
    })
    .unwrap();
    began.json["id"].as_u64().unwrap()
}

fn process_of(node: &Node) -> String {
    let found = run(&["pgrep", "-f", &format!("^[^ ]*qemu-system.*{}", node.vms.folder())]);
    found.unwrap().trim().to_owned()
}

#[test]
fn whoever_dies_meanwhile_one_vm_goes_on() {
    let mut site = Site::new();
    let mut guest = site.start();
    let mut load = Load::begin(&site, &mut guest);
    let operation = begin_slowly(&site, &mut guest);
    site.here().daemon.ok(&["operation", "cancel", &operation.to_string()]).unwrap();
    site.is_only_here();
    load.check(&mut guest);

    // The QEMU that it goes to.
    begin_slowly(&site, &mut guest);
    run(&["kill", "-9", &process_of(site.there())]).unwrap();
    site.is_only_here();
    load.check(&mut guest);

    // The daemon that it goes to.
    begin_slowly(&site, &mut guest);
    site.nodes[1].daemon.kill();
    site.nodes[1].daemon.restart(&site.rig).unwrap();
    site.is_only_here();
    load.check(&mut guest);

    // The daemon that it leaves.
    begin_slowly(&site, &mut guest);
    site.nodes[0].daemon.kill();
    site.nodes[0].daemon.restart(&site.rig).unwrap();
    site.is_only_here();
    load.check(&mut guest);

    // After all that it goes.
    site.move_it(&mut guest);
    load.end(&mut guest);
    // The QEMU that it leaves: the VM has ended then, and is not there twice.
    site.at = 1;
    begin_slowly(&site, &mut guest);
    run(&["kill", "-9", &process_of(site.here())]).unwrap();
    until("the VM to have ended", PATIENCE, || Ok(state(site.here()) == "stopped")).unwrap();
    until("nothing of it to come", PATIENCE, || Ok(qemus(&site.there().vms) == 0)).unwrap();
}
