//! Settings of CPUs and frequency policies in sysfs.

use std::path::Path;

use suimon_power::{Cpu, FrequencyPolicy, HostPowerSettings, IdleState, Turbo, TurboFile};

use crate::files::{
    list_numbered, read_flag, read_name, read_number, read_text, read_value, read_values,
};

/// Maximum number of CPUs of Linux (`CONFIG_NR_CPUS`).
const CPUS_MAX: usize = 8192;
/// Maximum number of idle states; `CPUIDLE_STATE_MAX` of Linux is 10.
const STATES_MAX: usize = 24;

/// Reads the settings of all CPUs and frequency policies below the folder `devices/system/cpu`.
pub(crate) fn read_settings(cpus: &Path) -> HostPowerSettings {
    let online = list(&read_text(&cpus.join("online")).unwrap_or_default());
    let numbers: Vec<u16> = list_numbered(cpus, "cpu", CPUS_MAX);
    let is_online = |number: u16| online.as_ref().is_none_or(|online| online.contains(&number));
    let cpu_list = numbers.into_iter().map(|number| cpu(cpus, number, is_online(number)));
    let policies: Vec<u16> = list_numbered(&cpus.join("cpufreq"), "policy", CPUS_MAX);
    let turbo = turbo(cpus);
    let policies = policies.into_iter().filter_map(|number| policy(cpus, number, turbo.is_none()));
    HostPowerSettings { cpus: cpu_list.collect(), policies: policies.collect(), turbo }
}

fn turbo(cpus: &Path) -> Option<Turbo> {
    let file = |file, is_on| Turbo { file, on: is_on };
    let no_turbo = read_flag(&cpus.join("intel_pstate/no_turbo"));
    let boost = || read_flag(&cpus.join("cpufreq/boost"));
    no_turbo
        .map(|is_off| file(TurboFile::NoTurbo, !is_off))
        .or_else(|| boost().map(|is_on| file(TurboFile::Boost, is_on)))
}

fn cpu(cpus: &Path, number: u16, online: bool) -> Cpu {
    let folder = cpus.join(format!("cpu{number}/cpuidle"));
    let states: Vec<u8> = list_numbered(&folder, "state", STATES_MAX);
    let states = states.into_iter().filter_map(|number| idle_state(&folder, number));
    Cpu { number, online, idle_states: states.collect() }
}

fn idle_state(folder: &Path, state: u8) -> Option<IdleState> {
    let folder = folder.join(format!("state{state}"));
    Some(IdleState {
        number: state,
        name: read_name(&folder.join("name")).unwrap_or_else(|| format!("state{state}")),
        latency_us: read_number(&folder.join("latency"))?,
        disabled: read_flag(&folder.join("disable"))?,
    })
}

/// Reads a frequency policy; `None` if none of its CPUs is online.
fn policy(cpus: &Path, policy: u16, with_boost: bool) -> Option<FrequencyPolicy> {
    let folder = cpus.join(format!("cpufreq/policy{policy}"));
    let affected = read_text(&folder.join("affected_cpus"))?;
    let mut affected: Vec<u16> =
        affected.split_whitespace().filter_map(|cpu| cpu.parse().ok()).take(CPUS_MAX).collect();
    affected.sort_unstable();
    affected.dedup();
    if affected.is_empty() {
        return None;
    }
    let min = read_number(&folder.join("cpuinfo_min_freq"));
    let max = read_number(&folder.join("cpuinfo_max_freq"));
    Some(FrequencyPolicy {
        number: policy,
        cpus: affected,
        driver: read_value(&folder.join("scaling_driver")).unwrap_or_else(|| "unknown".to_owned()),
        governors: read_values(&folder.join("scaling_available_governors")),
        governor: read_value(&folder.join("scaling_governor")),
        preferences: read_values(&folder.join("energy_performance_available_preferences")),
        preference: read_value(&folder.join("energy_performance_preference")),
        khz_range: min.zip(max).filter(|(min, max)| min <= max),
        khz_min: read_number(&folder.join("scaling_min_freq")),
        khz_max: read_number(&folder.join("scaling_max_freq")),
        boost: read_flag(&folder.join("boost")).filter(|_| with_boost),
    })
}

/// Parses a list of CPUs like `0-3,8`. Returns `None` if it is invalid.
fn list(text: &str) -> Option<std::collections::BTreeSet<u16>> {
    let mut cpus = std::collections::BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || usize::from(last) >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn lists_of_cpus_are_parsed_and_invalid_ones_refused() {
        let read = |text| list(text).map(|cpus| cpus.into_iter().collect::<Vec<_>>());
        assert_eq!(read("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(read("5"), Some(vec![5]));
        for invalid in ["", "3-1", "0-65535", "0-", "a", "1,,2", "-"] {
            assert_eq!(read(invalid), None, "{invalid}");
        }
    }
}
