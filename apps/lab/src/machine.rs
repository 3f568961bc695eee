//! Examination of the machine on which a run is made.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use suimon_lab_experiments::available_cpus;
use suimon_lab_run::{BackgroundLoad, MachineInfo};

/// Names of programs, each with the command that prints its version.
const TOOLS: [(&str, &[&str]); 14] = [
    ("iperf3", &["iperf3", "--version"]),
    ("netperf", &["netperf", "-V"]),
    ("fio", &["fio", "--version"]),
    ("nginx", &["nginx", "-v"]),
    ("wrk", &["wrk", "--version"]),
    ("curl", &["curl", "--version"]),
    ("vsftpd", &["vsftpd", "-v"]),
    ("sysbench", &["sysbench", "--version"]),
    ("mariadbd", &["mariadbd", "--version"]),
    ("java", &["java", "-version"]),
    ("qemu-system-x86_64", &["qemu-system-x86_64", "--version"]),
    ("ovs-vswitchd", &["ovs-vswitchd", "--version"]),
    ("nbdkit", &["nbdkit", "--version"]),
    ("etcd", &["etcd", "--version"]),
];

/// Examines the machine, which takes about 2 s.
pub(crate) fn examine() -> MachineInfo {
    let cpu_info = read("/proc/cpuinfo");
    let os = read("/etc/os-release");
    let memory = field(&read("/proc/meminfo"), "MemTotal:");
    MachineInfo {
        cpu_model: field(&cpu_info, "model name").trim_start_matches(": ").trim().to_owned(),
        cpus: available_cpus(),
        threads_per_core: threads_per_core(),
        memory_mib: memory
            .split_whitespace()
            .next()
            .and_then(|kib| kib.parse().ok())
            .map_or(0, |kib: u64| kib >> 10),
        virtualization: first_line(&["systemd-detect-virt"])
            .unwrap_or_else(|| "unknown".to_owned()),
        kvm: fs::metadata("/dev/kvm").is_ok(),
        kernel_release: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        distribution: field(&os, "PRETTY_NAME=").trim_matches('"').to_owned(),
        cpu_governor: fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
            .ok()
            .map(|text| text.trim().to_owned()),
        suimon_commit: env!("SUIMON_COMMIT").to_owned(),
        tool_versions: TOOLS
            .iter()
            .filter_map(|(name, command)| Some(((*name).to_owned(), first_line(command)?)))
            .collect(),
        background_load: noise(),
    }
}

fn noise() -> BackgroundLoad {
    let (load_before, steal) = (load_average(), steal_ticks());
    let started = Instant::now();
    let mut pieces: Vec<f64> = (0..40).map(|_| fixed_work()).collect();
    pieces.sort_by(f64::total_cmp);
    let median = pieces.get(pieces.len() / 2).copied().unwrap_or(1.0);
    let slowest = pieces.last().copied().unwrap_or(median);
    let longest_gap_us = longest_gap(Duration::from_millis(500));
    let ticks = (steal_ticks() - steal).max(0.0);
    // A tick of `/proc/stat` is 10 ms (`USER_HZ`, proc(5)).
    let seconds = started.elapsed().as_secs_f64();
    BackgroundLoad {
        load_before,
        slowest_excess_percent: (slowest / median - 1.0) * 100.0,
        longest_gap_us,
        steal_percent: ticks / 100.0 / seconds * 100.0,
    }
}

/// Executes a fixed amount of work that takes some milliseconds. Returns its duration in seconds.
fn fixed_work() -> f64 {
    let started = Instant::now();
    let mut x = 1_u64;
    for round in 0..8_000_000_u64 {
        x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round));
    }
    started.elapsed().as_secs_f64()
}

fn longest_gap(time: Duration) -> f64 {
    let started = Instant::now();
    let (mut last, mut longest) = (started, Duration::ZERO);
    while last.duration_since(started) < time {
        let now = Instant::now();
        longest = longest.max(now.duration_since(last));
        last = now;
    }
    longest.as_secs_f64() * 1e6
}

/// Returns the load average of the last minute, the first value of `/proc/loadavg` (proc(5)); 0 if
/// it cannot be read.
pub(crate) fn load_average() -> f64 {
    let text = read("/proc/loadavg");
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

fn steal_ticks() -> f64 {
    let text = read("/proc/stat");
    let line = text.lines().next().unwrap_or_default();
    line.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0.0)
}

/// Returns the number of threads per core of the first CPU, from the kernel's list of sibling CPUs
/// such as `0-1` or `0,12`; at least 1.
fn threads_per_core() -> u32 {
    let text = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    let count: u32 = text
        .trim()
        .split(',')
        .map(|range| match range.split_once('-') {
            Some((from, to)) => {
                let (from, to) = (from.parse::<u32>().unwrap_or(0), to.parse::<u32>().unwrap_or(0));
                to.saturating_sub(from) + 1
            }
            None => 1,
        })
        .sum();
    count.max(1)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the rest of the first line that starts with `keyword`; empty if there is none.
fn field(text: &str, keyword: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(keyword));
    line.unwrap_or_default().trim().to_owned()
}

/// Returns the first line that a program prints on standard output or standard error; `None` if it
/// cannot be executed or prints nothing.
fn first_line(command: &[&str]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let output = Command::new(program).args(arguments).output().ok()?;
    let output = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    let text = String::from_utf8_lossy(output);
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(120).collect())
}
