//! Benchmark of TCP between two namespaces with offloads enabled.

use std::fs;

use anyhow::Result;
use suimon_rig::iperf;

use crate::lan::{Lan, Through, address};
use crate::report::{Bar, Pair, Sample, Work, is_wanted};

const SECONDS: u32 = 4;
/// CPUs whose distance is measured; the kernel places all threads but the worker.
pub(crate) const CPUS: [u16; 2] = [0, 1];
pub(crate) const LINUX_DEFAULT: &str = "cubic";
/// Suffix in titles of comparisons with forwarding offloaded to the kernel.
pub(crate) const KERNEL_PATH: &str = ", `kernel_path`";

/// Measures `pairs` pairs with Linux' default congestion control and this machine's. They use the
/// CPUs in different ways.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut controls = vec![LINUX_DEFAULT.to_owned()];
    let ours = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
    if ours.trim() != LINUX_DEFAULT {
        controls.push(ours.trim().to_owned());
    }
    let works: Result<Vec<_>> =
        controls.iter().map(|control| measure_with(control, pairs)).collect();
    Ok(works?.into_iter().flatten().collect())
}

/// Measures through the switch and with forwarding by the kernel; each measurement of the bridge is
/// compared with both.
fn measure_with(control: &str, pairs: usize) -> Result<[Work; 2]> {
    let ways = [(Through::Suimon, "", ""), (Through::KernelPath, "-kernel-path", KERNEL_PATH)];
    let mut works = ways.map(|(_, suffix, with)| {
        Work::new(
            &format!("tcp-between-namespaces-{control}{suffix}"),
            &format!("TCP between two namespaces, offloads on, one stream, {control}{with}"),
            Through::Bridge.title(),
            "Gbit/s",
        )
        .with_bar(Bar::Ratio(1.0))
    });
    while is_wanted(&works[0], pairs) {
        let sample = |through| Sample::take(CPUS, || stream(through, control));
        let peer = sample(Through::Bridge)?;
        for (work, (through, ..)) in works.iter_mut().zip(ways) {
            work.push(Pair { peer, suimon: sample(through)? });
        }
    }
    Ok(works)
}

fn stream(through: Through, control: &str) -> Result<f64> {
    let lan = Lan::new(through, 2)?;
    lan.use_congestion_control(control)?;
    let _server = iperf::serve(&lan.rig, lan.guest(1))?;
    let report = iperf::measure(lan.guest(0), &address(1), SECONDS, &["--omit", "1"])?;
    Ok(report.bits_per_second / 1e9)
}
