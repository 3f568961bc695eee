//! Tests on a simulated sysfs in a folder, with the files of several drivers and with invalid ones.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::fake::{FakeSysfs, acpi_cpufreq, amd_pstate_epp, intel_pstate};
use proptest::prelude::*;
use suimon_ports::{PowerError, PowerHost};
use suimon_power::{
    OverwritePolicy, PowerPlan, PowerSpec, RequiredSetting, SettingId, SettingKind, SettingRecords,
    TurboFile, plan_requirements, reconcile,
};
use suimon_power_files::PowerFiles;

/// Returns the settings that a plan requests of the machine below the root.
fn required_settings(files: &PowerFiles, plan: PowerPlan) -> Vec<RequiredSetting> {
    let targets = plan_requirements(&PowerSpec::new(plan), &files.settings());
    targets.into_iter().flat_map(|target| target.settings).collect()
}

/// Applies a plan. Returns the records of the changed settings.
fn carry_out(
    files: &PowerFiles,
    plan: Option<PowerPlan>,
    records: &SettingRecords,
) -> SettingRecords {
    let mut records = records.clone();
    for _ in 0..3 {
        let required = plan.map(|plan| required_settings(files, plan)).unwrap_or_default();
        let todo = reconcile(&required, &files.settings(), &records, &OverwritePolicy::All);
        records = todo.records;
        for write in &todo.writes {
            files.write_setting(write.id, &write.value).unwrap();
            if todo.restored.contains(&write.id) {
                records.remove(&write.id);
            }
        }
    }
    records
}

#[test]
fn each_driver_gets_supported_values_and_the_originals_are_restored() {
    for make in [acpi_cpufreq, intel_pstate, amd_pstate_epp] {
        let sysfs = FakeSysfs::new();
        make(&sysfs);
        let before = sysfs.contents();
        let files = PowerFiles::new(sysfs.root());
        let mut records = SettingRecords::new();
        for plan in PowerPlan::ALL {
            records = carry_out(&files, Some(plan), &records);
            for setting in required_settings(&files, plan) {
                assert_eq!(
                    files.settings().value(setting.id),
                    Some(setting.value),
                    "{plan:?} {}",
                    setting.id
                );
            }
        }
        records = carry_out(&files, Some(PowerPlan::HighPerformance), &records);
        assert_ne!(sysfs.contents(), before);
        assert!(carry_out(&files, None, &records).is_empty());
        assert_eq!(sysfs.contents(), before);
    }
}

#[test]
fn intel_pstate_has_an_inverted_turbo_switch() {
    let sysfs = FakeSysfs::new();
    intel_pstate(&sysfs);
    let files = PowerFiles::new(sysfs.root());
    let turbo = SettingId::Turbo(TurboFile::NoTurbo);
    let value_for = |plan| {
        required_settings(&files, plan)
            .into_iter()
            .find(|setting| setting.id == turbo)
            .unwrap()
            .value
    };
    assert_eq!(
        (value_for(PowerPlan::Balanced), value_for(PowerPlan::HighPerformance)),
        ("1".into(), "0".into())
    );
    let governor = |plan| {
        let settings = required_settings(&files, plan);
        settings.into_iter().find(|setting| setting.id == SettingId::Governor(0)).unwrap().value
    };
    assert_eq!(governor(PowerPlan::Balanced), "powersave", "the driver chooses itself");
    let preference = SettingId::Preference(0);
    let saver = required_settings(&files, PowerPlan::PowerSaver);
    assert_eq!(saver.iter().find(|setting| setting.id == preference).unwrap().value, "power");
}

#[test]
fn without_cpufreq_every_setting_has_a_reason_for_its_absence() {
    let sysfs = FakeSysfs::new();
    sysfs.cpus(2);
    let files = PowerFiles::new(sysfs.root());
    let targets = plan_requirements(&PowerSpec::new(PowerPlan::HighPerformance), &files.settings());
    let kinds: Vec<SettingKind> = targets.iter().map(|target| target.kind).collect();
    assert!(kinds.contains(&SettingKind::Governor) && kinds.contains(&SettingKind::Turbo));
    for target in targets {
        let reason = target.unavailable.unwrap().to_string();
        assert!(
            reason.contains("cpufreq driver") || reason.contains("no turbo switch"),
            "{reason}"
        );
        assert!(target.settings.is_empty());
    }
    assert!(files.energy().is_empty());
    assert!(files.energy_unavailable_reason().unwrap().contains("as in virtual machines"));
}

#[test]
fn a_failed_write_is_reported_with_its_reason() {
    let sysfs = FakeSysfs::new();
    acpi_cpufreq(&sysfs);
    let files = PowerFiles::new(sysfs.root());
    assert!(matches!(
        files.write_setting(SettingId::Governor(9), "x"),
        Err(PowerError::Missing { .. })
    ));
    let path = sysfs.root().join(SettingId::Boost(0).file());
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(
        files.write_setting(SettingId::Boost(0), "1"),
        Err(PowerError::Refused { .. })
    ));
    // Root may write a file regardless of its mode.
    if !rustix::process::geteuid().is_root() {
        let path = sysfs.root().join(SettingId::Governor(0).file());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o400)).unwrap();
        assert!(matches!(
            files.write_setting(SettingId::Governor(0), "x"),
            Err(PowerError::Denied { .. })
        ));
    }
}

#[test]
fn offline_cpus_have_no_policy_and_no_values() {
    let sysfs = FakeSysfs::new();
    acpi_cpufreq(&sysfs);
    let files = PowerFiles::new(sysfs.root());
    assert_eq!(files.settings().online(), [0, 1]);
    sysfs.put("devices/system/cpu/online", "0");
    sysfs.put("devices/system/cpu/cpufreq/policy1/affected_cpus", "");
    let machine = files.settings();
    assert_eq!(machine.online(), [0]);
    assert_eq!(machine.policies.len(), 1);
    assert_eq!(machine.value(SettingId::IdleStateDisable { cpu: 1, state: 0 }), None);
    assert_eq!(files.online_cpus(), "0");
}

#[test]
fn zones_are_read_through_links_and_drivers_are_none() {
    let sysfs = FakeSysfs::new();
    sysfs.put("class/powercap/intel-rapl/enabled", "1");
    let zone = "devices/virtual/powercap/intel-rapl/intel-rapl:0";
    sysfs.put(&format!("{zone}/name"), "package-0");
    sysfs.put(&format!("{zone}/energy_uj"), "1234567");
    sysfs.put(&format!("{zone}/max_energy_range_uj"), "262143328850");
    let link = sysfs.root().join("class/powercap/intel-rapl:0");
    symlink(sysfs.root().join(zone), link).unwrap();
    let files = PowerFiles::new(sysfs.root());
    let zones = files.energy();
    assert_eq!(zones.len(), 1);
    assert_eq!((zones[0].zone.as_str(), zones[0].energy_uj), ("intel-rapl:0", 1_234_567));
    assert_eq!(files.energy_unavailable_reason(), None);
    sysfs.put(&format!("{zone}/energy_uj"), "");
    assert!(files.energy_unavailable_reason().unwrap().contains("no permission to read"));
}

/// Pipes and loops of links do not occur in sysfs, but in another file system mounted in its place.
#[test]
fn pipes_loops_and_endless_files_do_not_block() {
    let sysfs = FakeSysfs::new();
    acpi_cpufreq(&sysfs);
    let governor = sysfs.root().join(SettingId::Governor(0).file());
    std::fs::remove_file(&governor).unwrap();
    let status = std::process::Command::new("mkfifo").arg(&governor).status().unwrap();
    assert!(status.success());
    let preference = sysfs.root().join(SettingId::Preference(0).file());
    symlink("/dev/zero", &preference).unwrap();
    let loops = sysfs.root().join(SettingId::Boost(0).file());
    symlink(&loops, &loops).unwrap();
    let files = PowerFiles::new(sysfs.root());
    let started_at = Instant::now();
    let machine = files.settings();
    assert_eq!(machine.policies[0].governor, None);
    assert_eq!(machine.policies[0].preference, None);
    assert_eq!(machine.policies[0].boost, None);
    for id in [SettingId::Governor(0), SettingId::Preference(0), SettingId::Boost(0)] {
        assert!(files.write_setting(id, "performance").is_err());
    }
    // A file that blocked the call would block it indefinitely.
    assert!(started_at.elapsed() < Duration::from_secs(60));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Arbitrary contents of files cause no panic, and no CPU or policy that does not exist is
    /// reported.
    #[test]
    fn arbitrary_contents_of_files_are_tolerated(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 24),
    ) {
        let sysfs = FakeSysfs::new();
        intel_pstate(&sysfs);
        for (path, bytes) in sysfs.contents().keys().zip(contents.iter().cycle()) {
            std::fs::write(path, bytes).unwrap();
        }
        let files = PowerFiles::new(sysfs.root());
        let machine = files.settings();
        for plan in PowerPlan::ALL {
            let todo = plan_requirements(&PowerSpec::new(plan), &machine);
            let settings: Vec<RequiredSetting> = todo.into_iter().flat_map(|action| action.settings).collect();
            let todo = reconcile(&settings, &machine, &SettingRecords::new(), &OverwritePolicy::All);
            prop_assert!(todo.writes.iter().all(|write| machine.value(write.id).is_some()));
        }
        files.energy();
        files.energy_unavailable_reason();
        files.online_cpus();
    }
}

/// Reads this machine's settings, and writes and restores its idle states if that is permitted.
#[test]
fn the_sysfs_of_this_machine_is_read_and_idle_states_are_put_back() {
    let files = PowerFiles::new(Path::new("/sys"));
    let machine = files.settings();
    assert!(!machine.online().is_empty(), "{machine:?}");
    let spec = PowerSpec { idle_latency_us_max: Some(0), ..PowerSpec::new(PowerPlan::Custom) };
    let settings: Vec<RequiredSetting> =
        plan_requirements(&spec, &machine).into_iter().flat_map(|target| target.settings).collect();
    let todo = reconcile(&settings, &machine, &SettingRecords::new(), &OverwritePolicy::All);
    println!(
        "{} CPUs, {} policies, {} idle states to forbid",
        machine.cpus.len(),
        machine.policies.len(),
        todo.writes.len()
    );
    for write in &todo.writes {
        match files.write_setting(write.id, &write.value) {
            Ok(()) => assert_eq!(files.settings().value(write.id).as_ref(), Some(&write.value)),
            Err(error) => {
                println!("{error}");
                break;
            }
        }
    }
    let restored = reconcile(&[], &files.settings(), &todo.records, &OverwritePolicy::Nothing);
    for write in &restored.writes {
        files.write_setting(write.id, &write.value).unwrap();
    }
    assert_eq!(files.settings(), machine);
}
