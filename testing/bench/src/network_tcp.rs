//! Benchmark of TCP between two namespaces with offloads enabled.

use std::fs;

use anyhow::Result;
use suimon_rig::iperf;

use crate::lan::{Lan, Through, address};
use crate::report::{Bar, Pair, Sample, Work, needs_measurement};

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
    let configured = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
    if configured.trim() != LINUX_DEFAULT {
        controls.push(configured.trim().to_owned());
    }
    let benchmarks: Result<Vec<_>> =
        controls.iter().map(|control| measure_with(control, pairs)).collect();
    Ok(benchmarks?.into_iter().flatten().collect())
}

/// Measures through the switch and with forwarding by the kernel; each measurement of the bridge is
/// compared with both.
fn measure_with(control: &str, pairs: usize) -> Result<[Work; 2]> {
    let networks = [(Through::Suimon, "", ""), (Through::KernelPath, "-kernel-path", KERNEL_PATH)];
    let mut benchmarks = networks.map(|(_, suffix, note)| {
        Work::new(
            &format!("tcp-between-namespaces-{control}{suffix}"),
            &format!("TCP between two namespaces, offloads on, one stream, {control}{note}"),
            Through::Bridge.title(),
            "Gbit/s",
        )
        .with_bar(Bar::Ratio(1.0))
    });
    while needs_measurement(&benchmarks[0], pairs) {
        let sample = |network| Sample::take(CPUS, || stream(network, control));
        let peer = sample(Through::Bridge)?;
        for (work, (network, ..)) in benchmarks.iter_mut().zip(networks) {
            work.push(Pair { peer, suimon: sample(network)? });
        }
    }
    Ok(benchmarks)
}

fn stream(network: Through, control: &str) -> Result<f64> {
    let lan = Lan::new(network, 2)?;
    lan.use_congestion_control(control)?;
    let _server = iperf::serve(&lan.rig, lan.guest(1))?;
    let report = iperf::measure(lan.guest(0), &address(1), SECONDS, &["--omit", "1"])?;
    Ok(report.bits_per_second / 1e9)
}
