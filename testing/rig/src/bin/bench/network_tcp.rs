//! TCP between two namespaces, offloads on: TAP ports of Suimon, or veth pairs on
//! the kernel's bridge.

use anyhow::Result;
use suimon_rig::{Daemon, LightGuest, Namespace, Rig, iperf, run};

use crate::report::{Pair, Sample, Work, is_wanted};

const SECONDS: u32 = 4;
/// Between which the distance is taken; the kernel places all threads but the
/// processor.
const CPUS: [u16; 2] = [0, 1];

/// Runs `pairs` pairs.
pub(crate) fn measure(pairs: usize) -> Result<Work> {
    let mut work = Work {
        name: "tcp-between-namespaces".to_owned(),
        title: "TCP between two namespaces, offloads on, one stream".to_owned(),
        peer: "Linux bridge and veth".to_owned(),
        unit: "Gbit/s",
        pairs: Vec::new(),
        missing: None,
    };
    while is_wanted(&work, pairs) {
        let pair = Pair {
            peer: Sample::take(CPUS, through_the_bridge)?,
            suimon: Sample::take(CPUS, through_suimon)?,
        };
        work.pairs.push(pair);
        let Pair { peer, suimon } = pair;
        eprintln!("TCP, pair {}: bridge {peer}, Suimon {suimon} Gbit/s", work.pairs.len());
    }
    Ok(work)
}

fn through_suimon() -> Result<f64> {
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
    stream(&rig, &left.namespace, &right.namespace, &right.address())
}

fn through_the_bridge() -> Result<f64> {
    let rig = Rig::new()?;
    let bridge = Bridge::new(&rig)?;
    let left = bridge.guest(&rig, "left", "10.77.0.1/24")?;
    let right = bridge.guest(&rig, "right", "10.77.0.2/24")?;
    stream(&rig, &left, &right, "10.77.0.2")
}

fn stream(rig: &Rig, left: &Namespace, right: &Namespace, address: &str) -> Result<f64> {
    anyhow::ensure!(left.reaches(address), "the namespaces do not reach each other");
    let _server = iperf::serve(rig, right)?;
    Ok(iperf::measure(left, address, SECONDS, &["--omit", "1"])?.bits_per_second / 1e9)
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
