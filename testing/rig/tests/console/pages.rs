//! The web console in Chromium, with a daemon whose disks and uplinks are under load. The browser
//! tests are in `console/test/browser`.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use suimon_rig::{
    Daemon, HostedVms, Namespace, Process, Rig, Veth, fio, iperf, program, run_any, wait_until,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../console");
const DISK_LIMIT: Duration = Duration::from_secs(120);
/// Limit of the browser tests, below that of the test runner, so that their output is shown.
const BROWSER_LIMIT: Duration = Duration::from_secs(500);
/// Time limit of the browser tests in the full tier.
const FULL_BROWSER_LIMIT: Duration = Duration::from_secs(1500);
const PLAN: &str = include_str!("../../../../lab/plans/vmq-teaming.toml");
const LAB_LIMIT: Duration = Duration::from_secs(300);
const WORLD: &str = "10.78.0.1";
const WEB: &str = "10.78.0.11";

/// Returns the configuration of a host with an object of each kind that has a page.
fn host(
    rig: &Rig,
    (cables, web): (&[Veth; 2], &Namespace),
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
    for (name, cable) in ["left", "right"].iter().zip(cables) {
        let device = cable.near();
        let _ = write!(text, "[[uplink]]\nname = \"{name}\"\ndevice = \"{device}\"\n");
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

/// Starts TCP streams in both directions between a NIC and a host behind both uplinks. The rate is
/// low, so that the browser gets the CPUs.
fn load_uplinks(rig: &Rig, world: &Namespace, ends: &[String], web: &Namespace) -> [Process; 2] {
    world.run(&["ip", "link", "add", "wan", "type", "bridge"]).unwrap();
    for end in ends {
        world.run(&["ip", "link", "set", end, "master", "wan"]).unwrap();
    }
    world.address("wan", &format!("{WORLD}/24")).unwrap();
    web.wait_device("eth0").unwrap();
    web.address("eth0", &format!("{WEB}/24")).unwrap();
    let server = iperf::serve(rig, world).unwrap();
    let command = ["iperf3", "--client", WORLD, "--bidir", "--bitrate", "2M", "--time", "3600"];
    [server, web.start(rig, "stream", &command).unwrap()]
}

/// Makes a short run of the plan that the browser requests, which it compares with that run.
fn make_short_run(rig: &Rig, lab: &str) {
    let (head, _) = PLAN.split_once("[quick.settings]").unwrap();
    let (_, tail) = PLAN.split_once("[full]").unwrap();
    let quick = "[quick.settings]\nmodes = [\"switch-independent\"]\nalgorithms = [\"hyper-v-port\"]\n\
                 phase = [{ seconds = 2, sessions = 1 }, { seconds = 2, sessions = 11 },\n\
                 { seconds = 2, sessions = 80 }, { seconds = 2, sessions = 420 },\n\
                 { seconds = 2, sessions = 1 }]\n[full]";
    let file = rig.path("short.toml");
    fs::write(&file, format!("{head}{quick}{tail}")).unwrap();
    let command = [lab, "run", &file, "--scale", "quick", "--results", &rig.path("lab")];
    let output = run_any(&command, LAB_LIMIT).unwrap();
    assert!(output.is_ok(), "{}\n{}", output.stdout, output.stderr);
}

#[test]
fn pages_show_live_data_and_change_limits() {
    check_pages(false);
}

/// Runs the browser tests with a daemon under load. In the full tier, each page is checked in both
/// languages and themes and at two widths, and experiments are run.
fn check_pages(is_full_tier: bool) {
    let rig = Rig::new().unwrap();
    let world = Namespace::new(&rig, "world").unwrap();
    let ends = ["lf", "rf"].map(|tag| rig.device(tag));
    let cables = [("l", &ends[0]), ("r", &ends[1])]
        .map(|(tag, end)| Veth::new(&rig.device(tag), end, &world).unwrap());
    let console_address =
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let vms = HostedVms::new(&rig).unwrap();
    let web = Namespace::new(&rig, "web").unwrap();
    let daemon = Daemon::start(&rig, &host(&rig, (&cables, &web), &console_address, &vms)).unwrap();
    let _streams = load_uplinks(&rig, &world, &ends, &web);
    daemon.ok(&["vm", "start", "shop"]).unwrap();
    for disk in ["gold", "noisy"] {
        let is_ready = || Ok(daemon.json(&["disk", "show", disk])?["state"] == "ready");
        wait_until("the disks", DISK_LIMIT, is_ready).unwrap();
    }
    // More than the maximum that the browser sets, and little, so that the browser gets the CPUs:
    // fio's `rate_iops` would use all CPU time for its waits if the machine was busy when fio
    // started.
    let socket = rig.path("nbd.sock");
    let targets = ["gold", "noisy"].map(|disk| fio::FioTarget::Nbd { socket: &socket, disk });
    let job = "rw=randread bs=8k iodepth=2 thinktime=1s thinktime_blocks=600 \
               size=32m time_based runtime=3600";
    let file = rig.path("load");
    fs::write(&file, fio::job_file(&targets, job)).unwrap();
    let _load = Process::start(&rig, "fio", &["fio", &file]).unwrap();

    let worker = is_full_tier.then(|| {
        let lab = program("suimon-lab").unwrap();
        make_short_run(&rig, &lab);
        let command = [&lab, "work", "--results", &rig.path("lab")];
        Process::start(&rig, "lab", &command).unwrap()
    });

    let url = daemon.ok(&["console", "login"]).unwrap();
    let url = format!("SUIMON_CONSOLE_URL={}", url.trim());
    // Taking screenshots costs more than checking the pages.
    let folder = if is_full_tier { rig.path("screenshots") } else { String::new() };
    let screenshots = format!("SUIMON_CONSOLE_OUT={folder}");
    let command = [
        "env",
        &url,
        "SUIMON_CONSOLE_DISK=noisy",
        "SUIMON_CONSOLE_IDLE_DISK=gold",
        if is_full_tier { "SUIMON_CONSOLE_LOOKS=all" } else { "SUIMON_CONSOLE_LOOKS=" },
        if is_full_tier { "SUIMON_CONSOLE_LAB=vmq-teaming" } else { "SUIMON_CONSOLE_LAB=" },
        "SUIMON_CONSOLE_VM=shop",
        "SUIMON_CONSOLE_VM_TYPED=7 echo $((41 + 1)) of $(uname -s)",
        "SUIMON_CONSOLE_VM_ANSWERS=42 of Linux",
        &screenshots,
        "npm",
        "--prefix",
        FOLDER,
        "run",
    ];
    let command = [&command[..], &["--silent", "test:browser"]].concat();
    let limit = if is_full_tier { FULL_BROWSER_LIMIT } else { BROWSER_LIMIT };
    let output = run_any(&command, limit).unwrap();
    assert!(output.is_ok(), "{}\n{}", output.stdout, output.stderr);
    if is_full_tier {
        let screenshots = fs::read_dir(rig.path("screenshots")).unwrap().count();
        assert!(screenshots > 40, "{screenshots} screenshots");
    }
    drop(worker);
}

mod full {
    #[test]
    fn pages_in_every_appearance_and_experiments() {
        super::check_pages(true);
    }
}
