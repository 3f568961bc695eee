//! `make run`: a host with guests and traffic, from one host file, until Ctrl-C.
//!
//! Everything is in a temporary folder and removed at the end. With `SUIMON_RUN_SECONDS=N` the
//! demonstration ends after N seconds.
#![forbid(unsafe_code)]

mod disks;
mod host_checks;

use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use suimon_rig::{
    Daemon, GuestConsole, HostedVms, Namespace, Process, Rig, StopSignal, Veth, iperf, nginx,
    program,
};
use suimon_test_programs::end_program;

use crate::disks::Places;

const HOST: &str = include_str!("../../../demo/host.toml");
const WORLD: &str = "10.77.0.1";
const GUESTS: [(&str, &str); 3] =
    [("web", "10.77.0.11"), ("stream", "10.77.0.12"), ("peer", "10.77.0.13")];
const VM: &str = "10.77.0.14";
/// Default address of the console.
const CONSOLE: &str = "127.0.0.1:7446";
/// Size of the downloaded file: 4 GiB, sparse.
const FILE_BYTES: u64 = 4 << 30;
/// Seconds for which the load is high, and then low, alternately.
const HIGH_S: u32 = 20;
const LOW_S: u32 = 20;

fn main() -> ExitCode {
    end_program("first-light", run())
}

fn run() -> Result<()> {
    let seconds = match env::var("SUIMON_RUN_SECONDS") {
        Ok(text) => {
            let seconds = text.parse::<u64>();
            Some(seconds.with_context(|| format!("SUIMON_RUN_SECONDS={text} is not a number"))?)
        }
        Err(_) => None,
    };
    host_checks::check_host(&env::temp_dir())?;
    let stop = StopSignal::new()?;
    let rig = Rig::new()?;
    let folder = rig.folder().to_owned();
    let result = Scene::set(&rig, &stop);
    let result = result.and_then(|(mut scene, mut vm)| {
        scene.show_guest(&mut vm)?;
        vm.leave_a_shell()?;
        scene.explain()?;
        scene.show_rates(&stop, seconds)
    });
    drop(rig);
    say(&format!("stopped; {} and all that was made is removed", folder.display()));
    if stop.is_asked() { Ok(()) } else { result }
}

/// Running components. Fields are dropped from the top: traffic first, then the guests, the daemon,
/// and finally the namespaces and the wire.
struct Scene {
    _lab: Process,
    traffic: Vec<Process>,
    _vms: HostedVms,
    daemon: Daemon,
    guests: Vec<Namespace>,
    _servers: Vec<Process>,
    _wires: [Veth; 2],
    world: Namespace,
    places: Places,
    /// Folder with results of the lab.
    results: String,
}

impl Scene {
    /// Starts all components. Returns them with the VM's guest, which executes commands.
    fn set(rig: &Rig, stop: &StopSignal) -> Result<(Self, GuestConsole)> {
        say("making the guest's kernel and initramfs (once), from Debian's kernel package");
        let vms = HostedVms::with(rig, &disks::programs())?;
        let check = || if stop.is_asked() { bail!("stop requested") } else { Ok(()) };
        check()?;
        say("making the outside world: a namespace with nginx and iperf3 behind two veths");
        let world = Namespace::new(rig, "world")?;
        let wires = [wire(rig, &world)?, wire(rig, &world)?];
        let mut servers = vec![nginx::serve(rig, &world, FILE_BYTES)?, iperf::serve(rig, &world)?];
        let guests =
            GUESTS.iter().map(|(name, _)| Namespace::new(rig, name)).collect::<Result<Vec<_>>>()?;
        let places = Places::new(rig)?;
        let mut host = vms.fill_in(&places.fill_in(HOST));
        let results = rig.path("lab");
        host = host.replace("{console}", &console_address()?).replace("{lab}", &results);
        for (name, wire) in ["{left}", "{right}"].iter().zip(&wires) {
            host = host.replace(name, wire.near());
        }
        for ((name, _), guest) in GUESTS.iter().zip(&guests) {
            host = host.replace(&format!("{{{name}}}"), guest.name());
        }
        check()?;
        say("starting suimond with demo/host.toml");
        let daemon = Daemon::start(rig, &host).map_err(|error| daemon_error(&error))?;
        for ((_, address), guest) in GUESTS.iter().zip(&guests) {
            guest.wait_device("eth0")?;
            guest.address("eth0", &format!("{address}/24"))?;
        }
        servers.push(iperf::serve(rig, &guests[2])?);
        check()?;
        say("starting the VM (suimon vm start vm): Debian's kernel, NIC and disk over vhost-user");
        let mut vm = vms.start(&daemon, "vm")?;
        vm.load("virtio_blk", "")?;
        vm.address("eth0", &format!("{VM}/24"))?;
        if !vm.reaches(WORLD)? {
            bail!("the VM does not reach the outside world at {WORLD}");
        }
        check()?;
        say(
            "starting suimon lab work: it runs the experiments that the console's page Lab asks for",
        );
        let lab = program("suimon-lab")?;
        let arguments = [lab.as_str(), "work", "--results", &results];
        let mut scene = Self {
            _lab: Process::start(rig, "lab", &arguments)?,
            traffic: Vec::new(),
            _vms: vms,
            daemon,
            guests,
            _servers: servers,
            _wires: wires,
            world,
            places,
            results,
        };
        scene.start_traffic(rig, &mut vm)?;
        Ok((scene, vm))
    }

    fn start_traffic(&mut self, rig: &Rig, vm: &mut GuestConsole) -> Result<()> {
        let download = format!(
            "while curl --silent --show-error --limit-rate 20M --output /dev/null \
             http://{WORLD}/file; do :; done"
        );
        self.traffic.push(self.guests[0].start(rig, "download", &["sh", "-c", &download])?);
        let streams = |address: &str| {
            format!(
                "while :; do iperf3 --client {address} --parallel 4 --time {HIGH_S}; sleep {LOW_S}; done"
            )
        };
        self.traffic.push(self.guests[1].start(rig, "stream", &["sh", "-c", &streams(WORLD)])?);
        vm.run(&format!("( {} ) >/tmp/stream.log 2>&1 &", streams(GUESTS[2].1)))?;
        self.traffic.extend(self.places.start_load(rig, vm)?);
        Ok(())
    }

    /// Prints the VM's devices as its guest sees them.
    fn show_guest(&self, vm: &mut GuestConsole) -> Result<()> {
        println!("\nThe VM, from outside (suimon vm show vm):\n");
        println!("{}", indented(&self.daemon.ok(&["vm", "show", "vm"])?));
        // The kernel reports a carrier up to a second later.
        vm.run("for i in 1 2 3 4 5 6 7 8 9 10; do ip link show eth0 | grep -q NO-CARRIER || break; sleep 0.2; done")?;
        // The list of names is large; 1af4:1041 and 1af4:1042 are virtio NICs and disks.
        let commands = ["lspci -n | grep -e ' 02' -e ' 01'", "ip address show dev eth0", "lsblk"];
        for command in commands {
            println!("In the VM: {command}\n\n{}", indented(&vm.run(command)?));
        }
        Ok(())
    }

    /// Prints commands and addresses to try.
    fn explain(&self) -> Result<()> {
        let cli = program("suimon").unwrap_or_else(|_| "suimon".to_owned());
        let socket = self.daemon.socket();
        let console = self.daemon.ok(&["console", "login"])?;
        let console = console.trim();
        let mut text = format!(
            "\n  nginx download   world {WORLD} -> guest web {}, 20 MB/s\n  \
             TCP streams      guest stream {} -> world {WORLD}, {HIGH_S} s of {period}\n  \
             TCP streams      VM {VM} -> guest peer {}, {HIGH_S} s of {period}\n  \
             disk noisy       fio, 64 requests at a time, all it can get\n  \
             disk gold        fio, 16 at a time, {gold} s of {twice}; 2000 IOPS are its minimum\n  \
             disk vm          the VM reads its VHDX, held to 300 IOPS\n\n\
             In a browser on this machine, within a minute:\n\n  {console}\n  \
             (then: {cli} console login prints another)\n\n\
             In another terminal:\n\n  export SUIMON_SOCKET={socket}\n",
            GUESTS[0].1,
            GUESTS[1].1,
            GUESTS[2].1,
            period = HIGH_S + LOW_S,
            gold = disks::GOLD_S,
            twice = 2 * disks::GOLD_S
        );
        for command in [
            "top",
            "team show world",
            "vmq show world",
            "vmq explain stream",
            "team set world --algorithm hyper-v-port",
            "nic list",
            "vm show vm",
            "vm console vm                 # a shell in its guest, after Enter",
            "vm pause vm                   # and vm resume vm",
            "vm set vm --cpus 2            # while it runs",
            "nic show vm",
            "switch addresses wan",
            "queue list",
            "event follow",
            "nic set web --bandwidth-max-bps 500000000",
            "nic set vm --vlan 10          # cut off, live; --unset vlan brings it back",
            "nic capture web -w - --count 10 | tcpdump -nr -",
            "qos flows --watch",
            "disk list",
            "disk show vm",
            "disk set noisy --qos-max-iops 500",
            "disk set vm --qos-min-iops 3000        # refused, with the arithmetic",
            &format!("lab list --runs --results {}", self.results),
            "export",
        ] {
            let _ = writeln!(text, "  {cli} {command}");
        }
        let _ = writeln!(text, "  nbdinfo 'nbd+unix:///gold?socket={}'", self.places.nbd());
        let _ = writeln!(text, "  ip netns exec {} ping {VM}", self.guests[2].name());
        let _ = writeln!(text, "  ip netns exec {} curl http://{WORLD}/", self.guests[1].name());
        let _ = writeln!(text, "  ip netns exec {} ss -tin", self.world.name());
        let _ = write!(text, "\nThe host file: {}\nCtrl-C ends it.\n", self.daemon.file());
        println!("{text}");
        Ok(())
    }

    /// Prints one line per second, and the placement of queues on each change, until a stop is
    /// requested.
    fn show_rates(&mut self, stop: &StopSignal, seconds: Option<u64>) -> Result<()> {
        let started = Instant::now();
        let mut map = String::new();
        let mut last = self.bytes()?;
        let mut next = started + Duration::from_secs(1);
        while !stop.is_asked() {
            thread::sleep(
                next.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)),
            );
            if Instant::now() < next {
                continue;
            }
            self.daemon.process().check_running()?;
            let now = self.bytes()?;
            let mut line = format!("{:>4} s ", started.elapsed().as_secs());
            let period = now.time.duration_since(last.time).as_secs_f64();
            for port in &now.ports {
                // Counters of a port that was added or recreated begin at zero.
                let before = last.ports.iter().find(|before| before.name == port.name);
                let since = |now: u64, before: Option<u64>| {
                    rate(now.checked_sub(before.unwrap_or(0)).unwrap_or(now), period)
                };
                let _ = write!(
                    line,
                    "  {} in {} out {}",
                    port.name,
                    since(port.received, before.map(|port| port.received)),
                    since(port.sent, before.map(|port| port.sent))
                );
            }
            println!("{line}");
            if started.elapsed().as_secs() % 5 == 0 {
                println!("{}", disks::line(&self.daemon)?);
            }
            let new_map = self.queue_map()?;
            if new_map != map {
                println!("        queues of{new_map}");
                map = new_map;
            }
            std::io::stdout().flush()?;
            last = now;
            next += Duration::from_secs(1);
            if seconds.is_some_and(|seconds| started.elapsed() >= Duration::from_secs(seconds)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the queues of each worker.
    fn queue_map(&self) -> Result<String> {
        let vmq = self.daemon.http("GET", "/1.0/vmq/world", None)?.json;
        let mut text = String::new();
        for worker in vmq["workers"].as_array().context("no list of processors")? {
            let number = &worker["worker"];
            let queues = vmq["queues"].as_array().context("no list of queues")?;
            let queues_here = queues.iter().filter(|queue| queue["worker"] == *number);
            let names: Vec<&str> =
                queues_here.filter_map(|queue| queue["queue"].as_str()).collect();
            let names = if names.is_empty() { "none, parked".to_owned() } else { names.join(" ") };
            let _ = write!(text, "  processor {number}: {names}");
        }
        Ok(text)
    }

    /// Returns the bytes that each port has carried.
    fn bytes(&self) -> Result<Snapshot> {
        let mut ports = Vec::new();
        for path in ["/1.0/uplinks", "/1.0/nics"] {
            let answer = self.daemon.http("GET", path, None)?;
            for port in answer.json.as_array().context("no list of ports")? {
                let bytes = |key: &str| port["counters"][key].as_u64().unwrap_or(0);
                let name = port["config"]["name"].as_str().unwrap_or("?").to_owned();
                ports.push(Carried { name, received: bytes("tx_bytes"), sent: bytes("rx_bytes") });
            }
        }
        Ok(Snapshot { time: Instant::now(), ports })
    }
}

/// Returns the console's address: its default port, or another one if that is in use.
fn console_address() -> Result<String> {
    let usual = TcpListener::bind(CONSOLE);
    let is_free = usual.is_ok();
    let listener = usual.or_else(|_| TcpListener::bind("127.0.0.1:0"));
    let address = listener.context("no port is free for the console")?.local_addr()?.to_string();
    if !is_free {
        say(&format!("{CONSOLE} is in use; the console listens on {address}"));
    }
    Ok(address)
}

/// Returns why the daemon did not start: the last line of its log.
fn daemon_error(error: &anyhow::Error) -> anyhow::Error {
    let text = format!("{error:#}");
    let reason = text.lines().next_back().unwrap_or_default().trim();
    anyhow!("suimond did not start: {}", reason.trim_start_matches("suimond: "))
}

/// Creates a veth pair into the outside namespace, whose ends there are ports of one bridge with
/// its address.
fn wire(rig: &Rig, world: &Namespace) -> Result<Veth> {
    const BRIDGE: &str = "wan";
    let far = rig.device("out");
    let wire = Veth::new(&rig.device("up"), &far, world)?;
    if !world.run_any(&["ip", "link", "show", BRIDGE], Duration::from_secs(5))?.is_ok() {
        world.run(&["ip", "link", "add", BRIDGE, "type", "bridge"])?;
        world.run(&["ip", "link", "set", BRIDGE, "up"])?;
        world.address(BRIDGE, &format!("{WORLD}/24"))?;
    }
    world.run(&["ip", "link", "set", &far, "master", BRIDGE])?;
    Ok(wire)
}

/// Bytes that one port has carried, as its guest sees them.
struct Carried {
    name: String,
    received: u64,
    sent: u64,
}

/// Indents text below a heading.
fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Counters of all ports at one instant.
struct Snapshot {
    time: Instant,
    ports: Vec<Carried>,
}

#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(bytes: u64, seconds: f64) -> String {
    let bits = bytes as f64 * 8.0 / seconds;
    if bits >= 1e9 {
        format!("{:.1}G", bits / 1e9)
    } else if bits >= 1e6 {
        format!("{:.0}M", bits / 1e6)
    } else {
        format!("{:.0}k", bits / 1e3)
    }
}

fn say(text: &str) {
    println!("first light: {text}");
    let _ = std::io::stdout().flush();
}
