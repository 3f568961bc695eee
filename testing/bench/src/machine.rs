//! Description of the machine on which the benchmarks ran.

use std::fs;

use suimon_rig::{ovs, run};

/// Returns one line for each property that is needed to judge the results.
pub(crate) fn describe() -> Vec<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown CPU", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let first_line = |arguments: &[&str]| {
        run(arguments)
            .ok()
            .and_then(|text| text.lines().next().map(str::to_owned))
            .unwrap_or_default()
    };
    let commit =
        first_line(&["git", "-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "--short", "HEAD"]);
    let dpdk = first_line(&["dpkg-query", "-W", "-f", "${Version}", "dpdk"]);
    vec![
        format!(
            "{model}, {cpus} CPUs (virtual machine: {})",
            if is_virtual(&cpuinfo) { "yes" } else { "no" }
        ),
        format!("Linux {}", kernel.trim()),
        format!("Suimon {} ({commit})", env!("CARGO_PKG_VERSION")),
        ovs::version().unwrap_or_else(|_| "Open vSwitch: not installed".to_owned()),
        format!("DPDK testpmd {dpdk}"),
        first_line(&["iperf3", "--version"]),
        first_line(&["qemu-storage-daemon", "--version"]),
        first_line(&["nbdkit", "--version"]),
        first_line(&["fio", "--version"]),
        first_line(&["openssl", "version"]),
    ]
}

fn is_virtual(cpuinfo: &str) -> bool {
    cpuinfo.split_whitespace().any(|flag| flag == "hypervisor")
}
