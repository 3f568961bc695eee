//! TCP between two namespaces, offloads on: TAP ports of Suimon, or veth pairs on
//! the kernel's bridge.

use std::fs;

use anyhow::Result;
use suimon_rig::{Daemon, LightGuest, Namespace, Rig, iperf, run};

use crate::report::{Pair, Sample, Work, is_wanted};

const SECONDS: u32 = 4;
/// Between which the distance is taken; the kernel places all threads but the
/// processor.
const CPUS: [u16; 2] = [0, 1];
const LINUX_DEFAULT: &str = "cubic";
/// Where the namespaces' addresses are.
const NETWORK: &str = "10.77.0.0/24";

/// Runs `pairs` pairs with each congestion control that matters here: Linux' default
/// and this machine's. They keep the CPUs busy in different ways.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut controls = vec![LINUX_DEFAULT.to_owned()];
    let ours = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
    if ours.trim() != LINUX_DEFAULT {
        controls.push(ours.trim().to_owned());
    }
    controls.iter().map(|control| measure_with(control, pairs)).collect()
}

fn measure_with(control: &str, pairs: usize) -> Result<Work> {
    let mut work = Work {
        name: format!("tcp-between-namespaces-{control}"),
        title: format!("TCP between two namespaces, offloads on, one stream, {control}"),
        peer: "Linux bridge and veth".to_owned(),
        unit: "Gbit/s",
        pairs: Vec::new(),
        missing: None,
    };
    while is_wanted(&work, pairs) {
        let pair = Pair {
            peer: Sample::take(CPUS, || through_the_bridge(control))?,
            suimon: Sample::take(CPUS, || through_suimon(control))?,
        };
        work.pairs.push(pair);
        let Pair { peer, suimon } = pair;
        eprintln!(
            "TCP with {control}, pair {}: bridge {peer}, Suimon {suimon} Gbit/s",
            work.pairs.len()
        );
    }
    Ok(work)
}

fn through_suimon(control: &str) -> Result<f64> {
    let rig = Rig::new()?;
    let (left, right) = (LightGuest::new(&rig, "left", 1)?, LightGuest::new(&rig, "right", 2)?);
    let host = format!(
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n{}{}",
        left.nic_toml("lan", ""),
        right.nic_toml("lan", "")
    );
    let _daemon = Daemon::start(&rig, &host)?;
    left.bring_up()?;
    right.bring_up()?;
    stream(&rig, [&left.namespace, &right.namespace], &right.address(), control)
}

fn through_the_bridge(control: &str) -> Result<f64> {
    let rig = Rig::new()?;
    let bridge = Bridge::new(&rig)?;
    let left = bridge.guest(&rig, "left", "10.77.0.1/24")?;
    let right = bridge.guest(&rig, "right", "10.77.0.2/24")?;
    stream(&rig, [&left, &right], "10.77.0.2", control)
}

fn stream(rig: &Rig, ends: [&Namespace; 2], address: &str, control: &str) -> Result<f64> {
    let [left, right] = ends;
    for end in ends {
        use_congestion_control(end, control)?;
    }
    anyhow::ensure!(left.reaches(address), "the namespaces do not reach each other");
    let _server = iperf::serve(rig, right)?;
    Ok(iperf::measure(left, address, SECONDS, &["--omit", "1"])?.bits_per_second / 1e9)
}

/// From now on connections of the namespace begin with this congestion control.
/// iperf3's own option changes it once the connection stands: a socket that began with
/// bbr then sends at the pace of a timer whatever it changes to.
fn use_congestion_control(namespace: &Namespace, control: &str) -> Result<()> {
    let device = LightGuest::DEVICE;
    let words = ["ip", "route", "change", NETWORK, "dev", device, "congctl", control];
    namespace.run(&words).map(drop)
}

/// A bridge of the kernel in a namespace of its own, so that the machine's
/// firewall and other settings have no part in it.
struct Bridge {
    namespace: Namespace,
}

impl Bridge {
    fn new(rig: &Rig) -> Result<Self> {
        let namespace = Namespace::new(rig, "bridge")?;
        namespace.run(&["ip", "link", "add", "br0", "type", "bridge"])?;
        namespace.run(&["ip", "link", "set", "br0", "up"])?;
        Ok(Self { namespace })
    }

    fn guest(&self, rig: &Rig, name: &str, address: &str) -> Result<Namespace> {
        let guest = Namespace::new(rig, name)?;
        run(&[
            "ip",
            "-netns",
            self.namespace.name(),
            "link",
            "add",
            name,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            guest.name(),
        ])?;
        self.namespace.run(&["ip", "link", "set", name, "master", "br0", "up"])?;
        guest.address("eth0", address)?;
        Ok(guest)
    }
}
