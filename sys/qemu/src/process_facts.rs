//! Properties of processes from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the start time of a process in clock ticks since boot (`proc(5)`, field 22 of `stat`).
/// Returns `None` if there is no such process or it is a zombie.
pub(crate) fn start_ticks(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain any character, including parentheses.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return None;
    }
    // Field 3 precedes.
    fields.nth(18)?.parse().ok()
}

/// Returns the time since `ticks`, the start time of a process as [`start_ticks`] returns it.
pub(crate) fn elapsed_since_start(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second();
    let now = clock_gettime(ClockId::Boottime);
    let [seconds, nanoseconds] =
        [now.tv_sec, now.tv_nsec].map(|value| u64::try_from(value).unwrap_or(0));
    let now = Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds);
    let whole_seconds = Duration::from_secs(ticks / per_second);
    let fraction = Duration::from_secs(ticks % per_second) / u32::try_from(per_second).unwrap_or(1);
    now.saturating_sub(whole_seconds + fraction)
}

/// Returns the user id of a process: the owner of its folder in `/proc` (proc(5)). Returns `None`
/// if there is no such process.
pub(crate) fn process_user(process: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{process}")).ok().map(|metadata| metadata.uid())
}

/// Returns true if a process ignores the signals of `mask` (`proc(5)`, `SigIgn` of `status`).
/// Returns `None` if there is no such process.
pub(crate) fn ignores_signals(process: u32, mask: u64) -> Option<bool> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let ignored = text.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let ignored = u64::from_str_radix(ignored.trim(), 16).ok()?;
    Some(ignored & mask == mask)
}

/// Returns the size in bytes of a process's address space (`proc(5)`, field 1 of `statm`). Returns
/// `None` if there is no such process.
pub(crate) fn address_space_bytes(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().next()?.parse().ok()?;
    pages.checked_mul(u64::try_from(rustix::param::page_size()).ok()?)
}

/// Returns the feature flags that all CPUs in `cpuinfo`, the contents of `/proc/cpuinfo`, have in
/// common.
pub(crate) fn cpu_flags(cpuinfo: &str) -> Vec<String> {
    let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut sets = lines
        .filter(|(key, _)| key.trim() == "flags")
        .map(|(_, flags)| flags.split_whitespace().collect::<BTreeSet<&str>>());
    let first = sets.next().unwrap_or_default();
    let common = sets.fold(first, |common, flags| common.intersection(&flags).copied().collect());
    common.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{
        address_space_bytes, elapsed_since_start, ignores_signals, process_user, start_ticks,
    };

    #[test]
    fn a_process_has_a_user() {
        let own_user = rustix::process::geteuid().as_raw();
        assert_eq!(process_user(std::process::id()), Some(own_user));
        assert_eq!(process_user(5_000_000), None);
    }

    #[test]
    fn a_process_has_an_address_space_and_ignored_signals() {
        assert!(address_space_bytes(std::process::id()).is_some_and(|bytes| bytes > 1 << 20));
        assert_eq!(address_space_bytes(5_000_000), None);
        // Rust programs ignore SIGPIPE, and nothing can ignore SIGKILL.
        let ignores = |signal: i32| ignores_signals(std::process::id(), 1_u64 << (signal - 1));
        assert_eq!(ignores(libc::SIGPIPE), Some(true));
        assert_eq!(ignores(libc::SIGKILL), Some(false));
        assert_eq!(ignores_signals(5_000_000, 1), None);
    }

    #[test]
    fn a_process_has_a_start_time_and_a_missing_one_has_none() {
        assert!(start_ticks(std::process::id()).is_some_and(|ticks| ticks > 0));
        // This exceeds the kernel's largest process id, 4194304.
        assert_eq!(start_ticks(5_000_000), None);
    }

    #[test]
    fn a_process_ages_by_the_clock_since_boot() {
        let before = Instant::now();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let ticks = start_ticks(child.id()).unwrap();
        let age = elapsed_since_start(ticks);
        // A tick is 10 ms, and start times are rounded down.
        assert!(age <= before.elapsed() + Duration::from_millis(20), "{age:?}");
        std::thread::sleep(Duration::from_millis(50));
        assert!(elapsed_since_start(ticks) >= age + Duration::from_millis(50));
        assert_eq!(elapsed_since_start(u64::MAX / 2), Duration::ZERO);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn flags_are_those_of_all_cpus() {
        let text = "processor\t: 0\nflags\t\t: vmx avx fpu\nprocessor\t: 1\nflags\t\t: fpu avx\n";
        assert_eq!(super::cpu_flags(text), ["avx", "fpu"]);
        assert!(super::cpu_flags("").is_empty());
    }
}
