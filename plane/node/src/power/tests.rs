//! Power plans on simulated CPUs: application and restoration.

use std::sync::Arc;

use suimon_contract::{EventKind, PowerConfig, PowerEffect, PowerPlanName, PowerStatus};
use suimon_ports::{PowerHost, StateStore};
use suimon_power::{SettingId, ZoneReading};

use super::restore_power;
use crate::testing::{FakePower, Harness, MemoryStore, StoreFailure, host, wait_until};
use crate::{ChangeOptions, Edit, PowerEdit};

fn put(plan: PowerPlanName) -> Edit {
    Edit::Power(PowerEdit::Put(PowerConfig::from_plan(plan)))
}

fn patch(text: &str) -> Edit {
    Edit::Power(PowerEdit::Patch(text.as_bytes().to_vec()))
}

fn governors(power: &FakePower) -> Vec<String> {
    power.machine().policies.into_iter().filter_map(|policy| policy.governor).collect()
}

fn texts(harness: &Harness, kind: EventKind) -> Vec<String> {
    harness.events(kind.id()).into_iter().map(|event| event.text).collect()
}

fn current_values(status: &PowerStatus, setting: &str) -> Vec<String> {
    let settings =
        status.settings.iter().filter(|setting_status| setting_status.setting == setting);
    settings.map(|setting| setting.current.clone().unwrap_or_default()).collect()
}

#[test]
fn a_power_plan_is_applied_shown_changed_and_removed() {
    let power = FakePower::with_two_cpus();
    let before = power.machine();
    let harness = Harness::with_power(MemoryStore::default(), power.clone());
    assert_eq!(harness.node.power().effect, PowerEffect::Off);
    assert!(power.lock().writes.is_empty(), "no setting is written without a plan");

    harness.change(put(PowerPlanName::Balanced));
    let status = harness.node.power();
    assert_eq!(status.effect, PowerEffect::Full, "{status:?}");
    assert_eq!(current_values(&status, "governor"), ["schedutil", "schedutil"]);
    assert_eq!(current_values(&status, "turbo"), ["off"]);
    assert_eq!(current_values(&status, "performance_percent_min"), ["1500 MHz", "1500 MHz"]);
    let boost =
        status.changed_settings.iter().find(|change| change.file.ends_with("boost")).unwrap();
    assert_eq!((boost.original.as_str(), boost.written_by_daemon.as_str()), ("1", "0"));
    assert_eq!(status.data_plane.poll_budget_us, 50);

    harness.change(patch(r#"{"performance_percent_min": 100, "idle_latency_us_max": 10}"#));
    let status = harness.node.power();
    assert_eq!(current_values(&status, "performance_percent_min"), ["3400 MHz", "3400 MHz"]);
    assert_eq!(current_values(&status, "idle_states"), ["POLL C1", "POLL C1"]);

    harness.change(put(PowerPlanName::HighPerformance));
    let status = harness.node.power();
    assert_eq!(current_values(&status, "turbo"), ["on"]);
    assert!(status.cpus.iter().all(|cpu| cpu.idle_states == ["POLL", "C1", "C6"]));
    assert!(!status.data_plane.parks_workers);
    assert_eq!(harness.plane.poll_budget().as_micros(), 200, "the plane polls as the plan has it");
    assert!(
        !status.changed_settings.iter().any(|change| change.file.ends_with("boost")),
        "the former settings are restored"
    );

    harness.change(Edit::Power(PowerEdit::Delete));
    assert_eq!(power.machine(), before);
    assert_eq!(harness.plane.poll_budget().as_micros(), 50);
    assert!(harness.store.keys("power").is_empty());
    // One event per plan, not per key.
    harness.wait_events(EventKind::PowerPlanInEffect.id(), 2);
    wait_until("PowerRestored is emitted twice", || {
        texts(&harness, EventKind::PowerRestored).len() >= 2
    });
}

#[test]
fn unsupported_values_are_rounded_and_rejected_ones_are_reported() {
    let power = FakePower::with_two_cpus();
    let before = power.machine();
    let refused_setting = SettingId::Governor(1);
    power.lock().refuses.insert(refused_setting);
    let harness = Harness::with_power(MemoryStore::default(), power.clone());
    harness.change(patch(
        r#"{"plan": "custom", "governor": "performance", "performance_percent_max": 60}"#,
    ));
    let status = harness.node.power();
    assert_eq!(status.effect, PowerEffect::Partial);
    let max = status
        .settings
        .iter()
        .find(|setting| setting.setting == "performance_percent_max")
        .unwrap();
    // 60 % of the maximum frequency are 2040 MHz.
    assert_eq!((max.in_effect, max.current.as_deref()), (true, Some("2200 MHz")), "{max:?}");
    assert!(max.reason.as_ref().unwrap().contains("nearest"), "{max:?}");
    let governor = |cpu: u16| {
        let mut governors = status.settings.iter().filter(|setting| setting.setting == "governor");
        governors.find(|setting| setting.cpus == [cpu]).unwrap()
    };
    assert!(governor(0).in_effect && !governor(1).in_effect);
    assert!(governor(1).reason.as_ref().unwrap().contains("busy"), "{status:?}");
    let incomplete = harness.wait_event(EventKind::PowerPlanIncomplete.id());
    assert!(incomplete.fields.values().any(|reason| reason.contains("busy")), "{incomplete:?}");
    let writes = power.lock().writes.len();
    harness.change(patch(r#"{"poll_us": 7}"#));
    assert_eq!(power.lock().writes.len(), writes, "equal settings are not written again");
    drop(harness);
    assert_eq!(power.machine(), before, "the daemon's end puts all back");
}

#[test]
fn after_a_kill_the_next_daemon_restores_settings_outside_the_plan() {
    let power = FakePower::with_two_cpus();
    let before = power.machine();
    let harness = Harness::with_power(MemoryStore::default(), power.clone());
    harness.change(put(PowerPlanName::HighPerformance));
    assert_eq!(governors(&power), ["performance", "performance"]);
    // Simulates a kill: keeps the contents of the store and the host at this time.
    let (killed, machine) = (harness.store.surviving(), power.machine());
    drop(harness);
    power.lock().machine = machine;
    let next = Harness::with_power(killed, power.clone());
    assert_eq!(next.node.power().effect, PowerEffect::Full, "the plan is still desired");
    assert_eq!(next.node.power().changed_settings.len(), 4, "two governors and two frequencies");
    let (killed, machine) = (next.store.surviving(), power.machine());
    next.change(Edit::Power(PowerEdit::Delete));
    assert_eq!(power.machine(), before, "and what was there before is known still");
    drop(next);

    // Without a daemon, as called by the service manager.
    power.lock().machine = machine;
    let store: Arc<dyn StateStore> = Arc::new(killed);
    let host: Arc<dyn PowerHost> = Arc::new(power.clone());
    let restoration = restore_power(&store, &host, "").unwrap();
    assert_eq!((restoration.restored_count, restoration.failed.len()), (4, 0));
    assert_eq!(power.machine(), before);
    assert_eq!(restore_power(&store, &host, "").unwrap().restored_count, 0);
}

#[test]
fn records_of_settings_are_deleted_after_a_reboot_of_the_host() {
    let power = FakePower::with_two_cpus();
    let harness = Harness::with_power(MemoryStore::default(), power.clone());
    harness.change(put(PowerPlanName::HighPerformance));
    let killed = harness.store.surviving();
    drop(harness);
    let mut booted = FakePower::with_two_cpus().machine();
    booted.policies[0].governor = Some("conservative".to_owned());
    power.lock().machine = booted.clone();
    let store: Arc<dyn StateStore> = Arc::new(killed);
    let host: Arc<dyn PowerHost> = Arc::new(power.clone());
    let restoration = restore_power(&store, &host, "another").unwrap();
    assert_eq!(
        (restoration.restored_count, restoration.externally_changed.len()),
        (0, 0),
        "{restoration:?}"
    );
    assert_eq!(power.machine(), booted);
}

#[test]
fn externally_changed_settings_stay_and_are_reported_until_a_plan_is_set_again() {
    let power = FakePower::with_two_cpus();
    let harness = Harness::with_power(MemoryStore::default(), power.clone());
    harness.change(put(PowerPlanName::HighPerformance));
    power.lock().machine.policies[1].governor = Some("conservative".to_owned());
    let status = harness.node.power();
    assert_eq!(status.effect, PowerEffect::Partial);
    let reason = status.settings.iter().find_map(|setting| setting.reason.clone()).unwrap();
    assert!(reason.contains("changed by another program"), "{reason}");
    // A plan that is set again overwrites external changes.
    harness.change(put(PowerPlanName::HighPerformance));
    assert_eq!(governors(&power), ["performance", "performance"]);
    power.lock().machine.policies[0].governor = Some("schedutil".to_owned());
    harness.change(Edit::Power(PowerEdit::Delete));
    assert_eq!(governors(&power), ["schedutil", "conservative"], "left, and what was there last");
    harness.wait_events(EventKind::PowerSettingLeft.id(), 1);
    assert!(harness.store.keys("power").is_empty());
}

#[test]
fn cpus_that_come_online_get_the_plan_or_their_previous_settings() {
    let power = FakePower::with_two_cpus();
    let harness = Harness::with_power(MemoryStore::default(), power.clone());
    harness.change(put(PowerPlanName::HighPerformance));
    power.set_online(1, false);
    let status = harness.node.power();
    assert!(!status.cpus[1].online && status.effect == PowerEffect::Full);
    wait_until("the CPU is seen to be gone", || {
        !harness.events(EventKind::PowerCpusChanged.id()).is_empty()
    });
    power.set_online(1, true);
    wait_until("the CPU has the plan", || governors(&power) == ["performance", "performance"]);
    // The previous value is that before the plan, not the driver's initial value.
    harness.change(Edit::Power(PowerEdit::Delete));
    assert_eq!(governors(&power), ["ondemand", "ondemand"]);

    // The plan is removed while a CPU is offline.
    harness.change(put(PowerPlanName::HighPerformance));
    let event_count = harness.events(EventKind::PowerCpusChanged.id()).len();
    power.set_online(1, false);
    wait_until("the CPU is seen to be gone", || {
        harness.events(EventKind::PowerCpusChanged.id()).len() > event_count
    });
    harness.change(Edit::Power(PowerEdit::Delete));
    assert!(!harness.store.keys("power").is_empty(), "the record remains");
    power.set_online(1, true);
    wait_until("both CPUs have the former governor", || {
        governors(&power) == ["ondemand", "ondemand"]
    });
}

#[test]
fn a_failing_state_store_keeps_cpus_unchanged() {
    let power = FakePower::with_two_cpus();
    let before = power.machine();
    let harness = Harness::with_power(MemoryStore::default(), power.clone());
    // The store accepts the intent and desired state, and rejects the record of previous values.
    harness.store.arm(StoreFailure::Refuse(2));
    harness.change(put(PowerPlanName::HighPerformance));
    assert_eq!(power.machine(), before, "no setting without a record is written");
    let events = texts(&harness, EventKind::PowerPlanIncomplete);
    assert!(events[0].contains("could not be saved"), "{events:?}");
}

#[test]
fn a_preview_names_unsupported_settings_and_energy_is_reported_if_available() {
    let power = FakePower::default();
    let harness = Harness::with_power(MemoryStore::default(), power.clone());
    let plan = harness.node.preview(&put(PowerPlanName::Balanced), ChangeOptions::default());
    let plan = plan.unwrap();
    assert!(plan.steps[0].to_string().contains("no cpufreq driver"), "{plan:?}");
    assert_eq!(
        harness.node.power().energy.unavailable_reason.as_deref(),
        Some("there are no counters")
    );
    let zone = |energy_uj| ZoneReading {
        zone: "intel-rapl:0".to_owned(),
        name: "package-0".to_owned(),
        energy_uj,
        energy_uj_max: 262_143_328_850,
    };
    power.lock().zones = vec![zone(7)];
    let energy = harness.node.power().energy;
    assert_eq!((energy.unavailable_reason, energy.zones.len()), (None, 1));
    assert_eq!(harness.node.top().power.energy_uj, Some(0));
    harness.apply_ok(&host("[power]\nplan = \"custom\"\npoll_us = 0\n"));
    assert_eq!(harness.plane.poll_budget().as_micros(), 0);
    assert_eq!(harness.node.power().effect, PowerEffect::Full, "the plan has no CPU settings");
}
