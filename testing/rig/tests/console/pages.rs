//! The web console in Chromium, against a daemon whose disks and uplinks are under load: each page is accessible and
//! asks nobody else, a maximum that is set there is what a disk gets, a guest is typed to, and an experiment
//! that is asked for there is made.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use suimon_rig::{
    Daemon, HostedVms, Namespace, Process, Rig, Veth, fio, iperf, program, run_any, wait_until,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../console");
const PATIENCE: Duration = Duration::from_secs(120);
const BROWSER_LIMIT: Duration = Duration::from_secs(900);
const PLAN: &str = include_str!("../../../../lab/plans/vmq-teaming.toml");
const LAB_LIMIT: Duration = Duration::from_secs(300);
const WORLD: &str = "10.78.0.1";
const WEB: &str = "10.78.0.11";

/// A host with one of everything that pages are about.
fn host(
    rig: &Rig,
    (wires, web): (&[Veth; 2], &Namespace),
    console: &str,
    vms: &HostedVms,
) -> String {
    let store = rig.path("store");
    fs::create_dir(&store).unwrap();
    let results = rig.path("lab");
    let mut text = format!(
        "[host]\nname = \"lab\"\nvm_folder = \"{}\"\n\
         [lab]\nresults = \"{results}\"\n\
         [console]\nlisten = \"{console}\"\n\
         [[store]]\nname = \"fast\"\npath = \"{store}\"\ncapacity_iops = 4000\n\
         [[team]]\nname = \"world\"\nmembers = [\"left\", \"right\"]\nmode = \"switch-independent\"\n\
         [[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"world\"\n\
         [[nic]]\nname = \"web\"\nswitch = \"wan\"\nbackend = \"tap\"\ndevice = \"eth0\"\nnetns = \"{}\"\n\
         [[nic]]\nname = \"shop\"\nswitch = \"wan\"\nbackend = \"vhost-user\"\n{}",
        vms.folder(),
        web.name(),
        vms.table("shop", "nics = [\"shop\"]")
    );
    for (name, wire) in ["left", "right"].iter().zip(wires) {
        let near = wire.near();
        let _ = write!(text, "[[uplink]]\nname = \"{name}\"\ndevice = \"{near}\"\n");
    }
    for (name, qos) in [("gold", "min_iops = 1000"), ("noisy", "weight = 50")] {
        let _ = write!(
            text,
            "[[disk]]\nname = \"{name}\"\nstore = \"fast\"\nformat = \"raw\"\n\
             size_bytes = \"32 MiB\"\nqos = {{ {qos} }}\nnbd = {{ socket = \"{}\" }}\n",
            rig.path("nbd.sock")
        );
    }
    text
}

/// TCP both ways between a guest and the world outside, beyond both uplinks. The rate is low, so that
/// the browser gets the CPUs.
fn load_uplinks(rig: &Rig, world: &Namespace, ends: &[String], web: &Namespace) -> [Process; 2] {
    world.run(&["ip", "link", "add", "wan", "type", "bridge"]).unwrap();
    for end in ends {
        world.run(&["ip", "link", "set", end, "master", "wan"]).unwrap();
    }
    world.address("wan", &format!("{WORLD}/24")).unwrap();
    web.wait_device("eth0").unwrap();
    web.address("eth0", &format!("{WEB}/24")).unwrap();
    let server = iperf::serve(rig, world).unwrap();
    let words = ["iperf3", "--client", WORLD, "--bidir", "--bitrate", "2M", "--time", "3600"];
    [server, web.start(rig, "stream", &words).unwrap()]
}

/// A run of the plan that the browser asks for too, much shorter, to be compared with that.
fn make_a_run(rig: &Rig, lab: &str) {
    let (head, _) = PLAN.split_once("[quick.settings]").unwrap();
    let (_, tail) = PLAN.split_once("[full]").unwrap();
    let quick = "[quick.settings]\nmodes = [\"switch-independent\"]\nalgorithms = [\"hyper-v-port\"]\n\
                 phase = [{ seconds = 2, sessions = 1 }, { seconds = 2, sessions = 11 },\n\
                 { seconds = 2, sessions = 80 }, { seconds = 2, sessions = 420 },\n\
                 { seconds = 2, sessions = 1 }]\n[full]";
    let file = rig.path("short.toml");
    fs::write(&file, format!("{head}{quick}{tail}")).unwrap();
    let words = [lab, "run", &file, "--scale", "quick", "--results", &rig.path("lab")];
    let said = run_any(&words, LAB_LIMIT).unwrap();
    assert!(said.is_ok(), "{}\n{}", said.stdout, said.stderr);
}

#[test]
fn every_page_is_shown_and_a_maximum_set_there_is_what_a_disk_gets() {
    check_pages(false);
}

/// Runs the browser tests against a daemon with load, in the full tier also those of the lab.
fn check_pages(with_lab: bool) {
    let rig = Rig::new().unwrap();
    let world = Namespace::new(&rig, "world").unwrap();
    let ends = ["lf", "rf"].map(|tag| rig.device(tag));
    let wires = [("l", &ends[0]), ("r", &ends[1])]
        .map(|(tag, end)| Veth::new(&rig.device(tag), end, &world).unwrap());
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let vms = HostedVms::new(&rig).unwrap();
    let web = Namespace::new(&rig, "web").unwrap();
    let daemon = Daemon::start(&rig, &host(&rig, (&wires, &web), &free, &vms)).unwrap();
    let _streams = load_uplinks(&rig, &world, &ends, &web);
    daemon.ok(&["vm", "start", "shop"]).unwrap();
    for disk in ["gold", "noisy"] {
        let is_ready = || Ok(daemon.json(&["disk", "show", disk])?["state"] == "ready");
        wait_until("the disks", PATIENCE, is_ready).unwrap();
    }
    // More than the maximum that the browser sets, and little, so that the browser gets the CPUs: fio's
    // `rate_iops` would use all CPU time for its waits if the machine was busy when fio started.
    let socket = rig.path("nbd.sock");
    let targets = ["gold", "noisy"].map(|disk| fio::FioTarget::Nbd { socket: &socket, disk });
    let job = "rw=randread bs=8k iodepth=2 thinktime=1s thinktime_blocks=600 \
               size=32m time_based runtime=3600";
    let file = rig.path("load");
    fs::write(&file, fio::job_file(&targets, job)).unwrap();
    let _load = Process::start(&rig, "fio", &["fio", &file]).unwrap();

    let worker = with_lab.then(|| {
        let lab = program("suimon-lab").unwrap();
        make_a_run(&rig, &lab);
        let words = [&lab, "work", "--results", &rig.path("lab")];
        Process::start(&rig, "lab", &words).unwrap()
    });

    let url = daemon.ok(&["console", "login"]).unwrap();
    let url = format!("SUIMON_CONSOLE_URL={}", url.trim());
    // Pictures for people; taking them costs more than checking the pages.
    let pictures = if with_lab { rig.path("shots") } else { String::new() };
    let shots = format!("SUIMON_CONSOLE_OUT={pictures}");
    let words = [
        "env",
        &url,
        "SUIMON_CONSOLE_DISK=noisy",
        "SUIMON_CONSOLE_IDLE_DISK=gold",
        if with_lab { "SUIMON_CONSOLE_LAB=vmq-teaming" } else { "SUIMON_CONSOLE_LAB=" },
        "SUIMON_CONSOLE_VM=shop",
        "SUIMON_CONSOLE_VM_TYPED=7 echo $((41 + 1)) of $(uname -s)",
        "SUIMON_CONSOLE_VM_ANSWERS=42 of Linux",
        &shots,
        "npm",
        "--prefix",
        FOLDER,
        "run",
    ];
    let words = [&words[..], &["--silent", "test:browser"]].concat();
    let said = run_any(&words, BROWSER_LIMIT).unwrap();
    assert!(said.is_ok(), "{}\n{}", said.stdout, said.stderr);
    if with_lab {
        let shots = fs::read_dir(rig.path("shots")).unwrap().count();
        assert!(shots > 10, "{shots} pages");
    }
    drop(worker);
}

mod full {
    #[test]
    fn experiments_are_run_read_and_compared_in_the_page() {
        super::check_pages(true);
    }
}
