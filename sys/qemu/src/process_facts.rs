//! What `/proc` says of processes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// When a process was started, in clock ticks since the machine was (`proc(5)`, field 22 of
/// `stat`); nothing if there is none, or only what its parent has not heard of yet.
pub(crate) fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may have any character in it, parentheses too.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return None;
    }
    // That was field 3.
    fields.nth(18)?.parse().ok()
}

/// The user that a process runs as (`proc(5)`: its folder is that user's).
pub(crate) fn user(process: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{process}")).ok().map(|found| found.uid())
}

/// The flags that all CPUs have.
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
    use super::{started, user};

    #[test]
    fn a_process_has_a_user() {
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(user(std::process::id()), Some(own));
        assert_eq!(user(5_000_000), None);
    }

    #[test]
    fn a_process_has_a_time_and_nobody_has_none() {
        assert!(started(std::process::id()).is_some_and(|ticks| ticks > 0));
        // Above the kernel's highest number of a process, 4194304.
        assert_eq!(started(5_000_000), None);
    }

    #[test]
    fn flags_are_those_of_all_cpus() {
        let text = "processor\t: 0\nflags\t\t: vmx avx fpu\nprocessor\t: 1\nflags\t\t: fpu avx\n";
        assert_eq!(super::cpu_flags(text), ["avx", "fpu"]);
        assert!(super::cpu_flags("").is_empty());
    }
}
