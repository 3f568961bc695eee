//! Properties of processes from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Returns the start time of a process in clock ticks since boot (`proc(5)`, field 22 of `stat`).
/// Returns `None` if there is no such process or it is a zombie.
pub(crate) fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain any character, including parentheses.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if matches!(fields.next()?, "Z" | "X" | "x") {
        return None;
    }
    // That was field 3.
    fields.nth(18)?.parse().ok()
}

/// Returns the user of a process (`proc(5)`: the owner of its folder).
pub(crate) fn user(process: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{process}")).ok().map(|found| found.uid())
}

/// Returns the flags that all CPUs have.
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
        // Above the kernel's largest process id, 4194304.
        assert_eq!(started(5_000_000), None);
    }

    #[test]
    fn flags_are_those_of_all_cpus() {
        let text = "processor\t: 0\nflags\t\t: vmx avx fpu\nprocessor\t: 1\nflags\t\t: fpu avx\n";
        assert_eq!(super::cpu_flags(text), ["avx", "fpu"]);
        assert!(super::cpu_flags("").is_empty());
    }
}
