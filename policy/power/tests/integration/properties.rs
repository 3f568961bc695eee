//! Properties that hold for any host and any sequence of plans.

use std::collections::BTreeSet;

use proptest::prelude::*;
use suimon_power::{
    Cpu, FrequencyPolicy, HostPowerSettings, IdleState, OverwritePolicy, PowerPlan, PowerSpec,
    RequiredSetting, SettingId, SettingRecords, Turbo, TurboFile, plan_requirements, reconcile,
};

const GOVERNORS: [&str; 5] = ["performance", "powersave", "schedutil", "ondemand", "conservative"];
const PREFERENCES: [&str; 4] = ["performance", "balance_performance", "balance_power", "power"];

fn any_words(choices: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(choices, 1..=choices.len())
        .prop_map(|selected| selected.iter().map(|word| (*word).to_owned()).collect())
}

fn any_policy() -> impl Strategy<Value = FrequencyPolicy> {
    const DRIVERS: [&str; 4] = ["acpi-cpufreq", "intel_pstate", "intel_cpufreq", "amd-pstate-epp"];
    let driver = prop::sample::select(&DRIVERS[..]);
    let khz = (400u32..2000, 2000u32..5000, 0u32..100, 0u32..100);
    let preferences = prop::option::of(any_words(&PREFERENCES));
    (driver, any_words(&GOVERNORS), preferences, khz, prop::option::of(any::<bool>())).prop_map(
        |(driver, governors, preferences, (min, max, low, high), boost)| {
            let khz_at = |percent: u32| (min + (max - min) * percent / 100) * 1000;
            FrequencyPolicy {
                driver: driver.to_owned(),
                governor: governors.first().cloned(),
                governors,
                preference: preferences.as_ref().and_then(|selected| selected.last().cloned()),
                preferences: preferences.unwrap_or_default(),
                khz_range: Some((min * 1000, max * 1000)),
                khz_min: Some(khz_at(low.min(high))),
                khz_max: Some(khz_at(low.max(high))),
                boost,
                ..FrequencyPolicy::default()
            }
        },
    )
}

fn any_machine() -> impl Strategy<Value = HostPowerSettings> {
    let turbo = prop_oneof![Just(TurboFile::NoTurbo), Just(TurboFile::Boost)];
    let turbo = prop::option::of(
        (turbo, any::<bool>()).prop_map(|(file, enabled)| Turbo { file, on: enabled }),
    );
    let states = prop::collection::vec((0u32..200, any::<bool>()), 0..5);
    let cpus = prop::collection::vec((prop::bool::weighted(0.9), states), 1..6);
    (prop::collection::vec(any_policy(), 0..3), turbo, cpus).prop_map(
        |(mut policies, turbo, cpus)| {
            let cpus: Vec<Cpu> = (0..)
                .zip(cpus)
                .map(|(number, (online, states))| Cpu {
                    number,
                    online,
                    idle_states: (0..)
                        .zip(states)
                        .map(|(number, (latency_us, disabled))| IdleState {
                            number,
                            name: format!("C{number}"),
                            latency_us,
                            disabled,
                        })
                        .collect(),
                })
                .collect();
            let count = policies.len().max(1);
            for (index, policy) in policies.iter_mut().enumerate() {
                policy.number = u16::try_from(index).unwrap();
                let own_cpus = cpus.iter().filter(|cpu| cpu.online);
                let own_cpus = own_cpus.filter(|cpu| usize::from(cpu.number) % count == index);
                policy.cpus = own_cpus.map(|cpu| cpu.number).collect();
            }
            HostPowerSettings { cpus, policies, turbo }
        },
    )
}

fn any_spec() -> impl Strategy<Value = PowerSpec> {
    let governor = prop::option::weighted(0.3, prop::sample::select(&GOVERNORS[..]));
    let preference = prop::option::weighted(0.3, prop::sample::select(&PREFERENCES[..]));
    let percents = (prop::option::weighted(0.3, 0u8..=100), prop::option::weighted(0.3, 1u8..=100));
    let idle = (prop::option::weighted(0.3, 0u8..6), prop::option::weighted(0.3, 0u32..250));
    let marks = (prop::option::of(50u8..=95), prop::option::of(0u8..=65));
    let plan = prop::sample::select(&PowerPlan::ALL[..]);
    (plan, governor, preference, percents, prop::option::weighted(0.3, any::<bool>()), idle, marks)
        .prop_map(|(plan, governor, preference, percents, turbo, idle, marks)| PowerSpec {
            governor: governor.map(str::to_owned),
            energy_preference: preference.map(str::to_owned),
            performance_percent_min: percents.0,
            performance_percent_max: percents.1,
            turbo,
            idle_state_max: idle.0.map(|number| format!("C{number}")),
            idle_latency_us_max: idle.1,
            vmq_high_percent: marks.0,
            vmq_low_percent: marks.1,
            ..PowerSpec::new(plan)
        })
}

/// Applies a write to the simulated kernel settings as the kernel does; asserts that it is valid.
fn write(machine: &mut HostPowerSettings, setting: &RequiredSetting) {
    let flag = || {
        assert!(["0", "1"].contains(&setting.value.as_str()), "{setting:?}");
        setting.value == "1"
    };
    let khz = || setting.value.parse::<u32>().unwrap();
    match setting.id {
        SettingId::Turbo(file) => {
            machine.turbo = Some(Turbo { file, on: flag() == (file == TurboFile::Boost) });
        }
        SettingId::IdleStateDisable { cpu, state } => {
            let cpu = machine.cpus.iter_mut().find(|candidate| candidate.number == cpu).unwrap();
            assert!(cpu.online);
            let state =
                cpu.idle_states.iter_mut().find(|candidate| candidate.number == state).unwrap();
            state.disabled = flag();
        }
        SettingId::Boost(number)
        | SettingId::Governor(number)
        | SettingId::Preference(number)
        | SettingId::FrequencyMax(number)
        | SettingId::FrequencyMin(number) => {
            let policy =
                machine.policies.iter_mut().find(|policy| policy.number == number).unwrap();
            match setting.id {
                SettingId::Boost(_) => policy.boost = Some(flag()),
                SettingId::Governor(_) => {
                    assert!(policy.governors.contains(&setting.value));
                    policy.governor = Some(setting.value.clone());
                }
                SettingId::Preference(_) => {
                    assert!(policy.preferences.contains(&setting.value));
                    policy.preference = Some(setting.value.clone());
                }
                SettingId::FrequencyMax(_) => policy.khz_max = Some(khz()),
                _ => policy.khz_min = Some(khz()),
            }
            let (lowest, limit) = policy.khz_range.unwrap();
            let (min, max) = (policy.khz_min.unwrap(), policy.khz_max.unwrap());
            assert!(lowest <= min && min <= max && max <= limit, "{min} {max} after {setting:?}");
        }
    }
}

fn settings(spec: &PowerSpec, machine: &HostPowerSettings) -> Vec<RequiredSetting> {
    plan_requirements(spec, machine).into_iter().flat_map(|target| target.settings).collect()
}

/// Applies a plan until no writes are left and returns the records.
fn settle(
    spec: Option<&PowerSpec>,
    machine: &mut HostPowerSettings,
    mut records: SettingRecords,
    assert: &OverwritePolicy,
) -> SettingRecords {
    for _ in 0..3 {
        let required = spec.map(|spec| settings(spec, machine)).unwrap_or_default();
        let todo = reconcile(&required, machine, &records, assert);
        records = todo.records;
        for pending in &todo.writes {
            assert!(
                records.contains_key(&pending.id),
                "written before it was recorded: {pending:?}"
            );
            write(machine, pending);
            if todo.restored.contains(&pending.id) {
                records.remove(&pending.id);
            }
        }
        if todo.writes.is_empty() {
            return records;
        }
    }
    panic!("it does not come to rest");
}

proptest! {
    #[test]
    fn plans_take_effect_and_the_original_values_return_afterwards(
        machine in any_machine(),
        specs in prop::collection::vec(any_spec(), 1..4),
    ) {
        let before = machine.clone();
        let mut machine = machine;
        let mut records = SettingRecords::new();
        for spec in &specs {
            records = settle(Some(spec), &mut machine, records, &OverwritePolicy::All);
            for setting in settings(spec, &machine) {
                let value = machine.value(setting.id);
                prop_assert_eq!(value.as_deref(), Some(setting.value.as_str()), "{:?}", setting.id);
            }
            // Settings that the plan does not require have their original values.
            for id in records.keys() {
                prop_assert!(settings(spec, &machine).iter().any(|setting| setting.id == *id));
            }
        }
        let records = settle(None, &mut machine, records, &OverwritePolicy::Nothing);
        prop_assert!(records.is_empty());
        prop_assert_eq!(machine, before);
    }

    /// External changes of frequencies, governors and states during a plan are left alone and
    /// reported.
    #[test]
    fn external_changes_are_kept_and_reported(
        machine in any_machine(),
        spec in any_spec(),
        position in any::<prop::sample::Index>(),
    ) {
        let mut machine = machine;
        let records = settle(Some(&spec), &mut machine, SettingRecords::new(), &OverwritePolicy::All);
        let flags: Vec<_> = records.keys().copied().filter(|id| matches!(
            id, SettingId::Governor(_) | SettingId::Preference(_))).collect();
        prop_assume!(!flags.is_empty());
        let id = flags[position.index(flags.len())];
        let policy = |machine: &mut HostPowerSettings, number: u16, value: &str| {
            let policy = machine.policies.iter_mut().find(|policy| policy.number == number).unwrap();
            match id {
                SettingId::Governor(_) => policy.governor = Some(value.to_owned()),
                _ => policy.preference = Some(value.to_owned()),
            }
        };
        let (SettingId::Governor(number) | SettingId::Preference(number)) = id else {
            unreachable!()
        };
        policy(&mut machine, number, "somebody's");
        for targets in [settings(&spec, &machine), Vec::new()] {
            let is_wanted = targets.iter().any(|setting| setting.id == id);
            let todo = reconcile(&targets, &machine, &records, &OverwritePolicy::Nothing);
            prop_assert!(todo.writes.iter().all(|setting| setting.id != id));
            prop_assert!(todo.external_changes.iter().any(|setting| setting.id == id && setting.current_value == "somebody's"));
            prop_assert_eq!(todo.records.contains_key(&id), is_wanted);
        }
        // Setting a plan again overwrites the external changes, and their values become the ones to
        // restore.
        let todo = reconcile(&settings(&spec, &machine), &machine, &records, &OverwritePolicy::All);
        prop_assert_eq!(todo.records[&id].original_value.as_str(), "somebody's");
    }

    /// The daemon may crash between any two writes; the records are durable before the first one.
    #[test]
    fn a_process_killed_between_writes_can_restore(
        machine in any_machine(),
        spec in any_spec(),
        dies_after in 0usize..12,
    ) {
        let before = machine.clone();
        let mut machine = machine;
        let targets = settings(&spec, &machine);
        let todo = reconcile(&targets, &machine, &SettingRecords::new(), &OverwritePolicy::All);
        for change in todo.writes.iter().take(dies_after) {
            write(&mut machine, change);
        }
        let records = settle(None, &mut machine, todo.records, &OverwritePolicy::Nothing);
        prop_assert!(records.is_empty());
        prop_assert_eq!(machine, before);
    }

    #[test]
    fn settings_of_cpus_that_are_offline_wait(machine in any_machine(), spec in any_spec()) {
        let before = machine.clone();
        let mut machine = machine;
        let records = settle(Some(&spec), &mut machine, SettingRecords::new(), &OverwritePolicy::All);
        let online = machine.clone();
        for cpu in &mut machine.cpus {
            cpu.online = false;
        }
        machine.policies.clear();
        let todo = reconcile(&[], &machine, &records, &OverwritePolicy::Nothing);
        let waits: BTreeSet<SettingId> =
            records.keys().copied().filter(|id| !matches!(id, SettingId::Turbo(_))).collect();
        prop_assert_eq!(&todo.unavailable_settings, &waits);
        // CPUs return with the settings they had when they went offline.
        let mut machine = HostPowerSettings { turbo: machine.turbo, ..online };
        settle(None, &mut machine, records, &OverwritePolicy::Nothing);
        prop_assert_eq!(machine, before);
    }

    #[test]
    fn water_marks_differ_and_explicit_values_take_precedence(spec in any_spec()) {
        let share = spec.data_plane();
        prop_assert!(share.vmq_high_percent >= share.vmq_low_percent + 30, "{share:?}");
        prop_assert!(share.vmq_high_percent <= 95);
        if let Some(low) = spec.vmq_low_percent {
            prop_assert_eq!(share.vmq_low_percent, low);
        } else if let Some(high) = spec.vmq_high_percent {
            prop_assert_eq!(share.vmq_high_percent, high);
        }
    }
}
