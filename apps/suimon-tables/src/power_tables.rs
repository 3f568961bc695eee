//! Text output of power management.

use suimon_contract::{
    ChangedPowerSetting, PowerCpuStatus, PowerEnergyStatus, PowerSettingStatus, PowerStatus,
    ResourceKind,
};

use crate::columns;
use crate::detail_text::DetailText;
use crate::table::{Table, or_dash};
use crate::units;

/// Returns the complete state of power management.
pub fn details(power: &PowerStatus) -> String {
    let mut lines = DetailText::default();
    match &power.config {
        Some(config) => lines.add_keys(ResourceKind::Power, config),
        None => lines.add("plan", "none: CPU settings are not changed"),
    }
    lines.add("in effect", power.effect.as_str());
    let share = power.data_plane;
    lines.add("workers park", if share.parks_workers { "yes" } else { "no" });
    lines.add("poll budget", format!("{} µs", share.poll_budget_us));
    let marks = format!("{} % and {} %", share.vmq_high_percent, share.vmq_low_percent);
    lines.add("VMQ high and low mark", marks);
    lines.add("power", energy(&power.energy));
    if !power.settings.is_empty() {
        lines.add_table(&settings(&power.settings));
    }
    lines.add_table(&cpus(&power.cpus));
    if !power.changed_settings.is_empty() {
        lines.add_table(&changed(&power.changed_settings));
    }
    lines.into_text()
}

/// Formats energy and power by zone.
pub(crate) fn energy(energy: &PowerEnergyStatus) -> String {
    if let Some(reason) = &energy.unavailable_reason {
        return reason.clone();
    }
    let Some(milliwatts) = energy.milliwatts else {
        return "unknown until the next request".to_owned();
    };
    let zones = energy.zones.iter().filter(|zone| zone.is_in_host_sum);
    let zones: Vec<String> = zones
        .map(|zone| {
            let power = zone.milliwatts.map(units::watts);
            format!("{} {}", zone.name, or_dash(power))
        })
        .collect();
    format!("{} ({})", units::watts(milliwatts), zones.join(", "))
}

fn settings(statuses: &[PowerSettingStatus]) -> Table {
    let mut table = Table::new(&columns::POWER_SETTINGS);
    for (cpus, row) in grouped(
        statuses,
        |setting| &setting.cpus,
        |setting| PowerSettingStatus { cpus: Vec::new(), ..setting.clone() },
    ) {
        table.add_row([
            row.setting,
            if cpus.is_empty() { "host".to_owned() } else { list(&cpus) },
            row.required,
            or_dash(row.current),
            if row.in_effect { "yes" } else { "no" }.to_owned(),
            row.reason.unwrap_or_default(),
        ]);
    }
    table
}

fn cpus(statuses: &[PowerCpuStatus]) -> Table {
    let mut table = Table::new(&columns::POWER_CPUS);
    let with_numbers: Vec<(Vec<u16>, &PowerCpuStatus)> =
        statuses.iter().map(|cpu| (vec![cpu.cpu], cpu)).collect();
    let alike =
        |(_, cpu): &(Vec<u16>, &PowerCpuStatus)| PowerCpuStatus { cpu: 0, ..(*cpu).clone() };
    for (cpus, cpu) in grouped(&with_numbers, |(cpus, _)| cpus, alike) {
        let mhz = cpu.khz_min.zip(cpu.khz_max);
        table.add_row([
            list(&cpus),
            if cpu.online { "yes" } else { "no" }.to_owned(),
            or_dash(cpu.driver),
            or_dash(cpu.governor),
            or_dash(cpu.energy_preference),
            or_dash(mhz.map(|(min, max)| format!("{}–{}", min / 1000, max / 1000))),
            if cpu.idle_states.is_empty() { "–".to_owned() } else { cpu.idle_states.join(", ") },
        ]);
    }
    table
}

fn changed(statuses: &[ChangedPowerSetting]) -> Table {
    let mut table = Table::new(&columns::POWER_CHANGED_SETTINGS);
    for change in statuses {
        table.add_row([
            change.file.clone(),
            change.original.clone(),
            change.written_by_daemon.clone(),
            or_dash(change.current.clone()),
        ]);
    }
    table
}

/// Merges statuses that have the same `alike` value: returns the sorted CPUs of each group with
/// this value, in the order of the first status. Statuses without CPUs, which concern the host,
/// form separate groups.
fn grouped<'a, T, K: PartialEq>(
    statuses: &'a [T],
    cpus: impl Fn(&'a T) -> &'a Vec<u16>,
    alike: impl Fn(&T) -> K,
) -> Vec<(Vec<u16>, K)> {
    let mut groups: Vec<(Vec<u16>, K)> = Vec::new();
    for item in statuses {
        let key = alike(item);
        let of_host = cpus(item).is_empty();
        let group = groups
            .iter_mut()
            .find(|(group_cpus, group_key)| *group_key == key && group_cpus.is_empty() == of_host);
        match group {
            Some((group_cpus, _)) => group_cpus.extend(cpus(item)),
            None => groups.push((cpus(item).clone(), key)),
        }
    }
    for (cpus, _) in &mut groups {
        cpus.sort_unstable();
        cpus.dedup();
    }
    groups
}

/// Formats ascending CPU numbers as a list such as `0-3,8`.
fn list(cpus: &[u16]) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*cpu) => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let texts: Vec<String> = ranges
        .into_iter()
        .map(
            |(first, last)| {
                if first == last { first.to_string() } else { format!("{first}-{last}") }
            },
        )
        .collect();
    texts.join(",")
}

#[cfg(test)]
#[path = "power_tables_tests.rs"]
mod tests;
