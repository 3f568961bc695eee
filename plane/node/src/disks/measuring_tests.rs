//! Tests of measurements, with stores in memory and devices of a configurable speed.

use core::time::Duration;

use suimon_contract::{
    ApiError, CapacitySource, ErrorCode, EventKind, HostConfig, MeasureStoreRequest, Operation,
    OperationState, StorePattern, StoreStatus,
};
use suimon_ports::testing::RateLimit;
use suimon_quantity::{StoreId, Time, WorkerId};
use suimon_storage::{PlaneNotice, StoreView};
use suimon_storage_engine::StoreRole;
use suimon_storage_qos::{CapacityEstimate, CapacityLow, StoreEvent};

use crate::testing::{
    DEADLINE, FakeDevices, FakeDisks, Harness, MemoryStore, host, name, wait_until,
};
use crate::{ChangeOptions, Edit, ResourceEdit};

const STORE: &str = "/srv/fast";

fn config(keys: &str) -> HostConfig {
    host(&format!(
        r#"
        [[store]]
        name = "fast"
        path = "/srv/fast"
        {keys}
        [[disk]]
        name = "data"
        store = "fast"
        format = "raw"
        size_bytes = 1048576
        vhost_user = {{ socket = "/run/data.sock" }}
        "#
    ))
}

fn harness(keys: &str) -> Harness {
    let disks = FakeDisks::with_store(STORE);
    disks.set_pace(RateLimit { cost_per_poll: 8, ..RateLimit::default() });
    let harness = Harness::with_disks(MemoryStore::default(), FakeDevices::default(), disks);
    harness.apply_ok(&config(keys));
    harness
}

fn begin(harness: &Harness, during_service: bool) -> Result<Operation, ApiError> {
    let request = MeasureStoreRequest { seconds: 1, while_in_use: during_service };
    harness.node.measure_store(&name("fast"), request)
}

fn measure(harness: &Harness) -> Operation {
    let operation = begin(harness, false).unwrap();
    harness.node.wait_operation(operation.id, DEADLINE).unwrap()
}

fn measure_well(harness: &Harness) -> StoreStatus {
    let operation = measure(harness);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    harness.node.store("fast").unwrap()
}

fn promise(harness: &Harness, iops: u64, force: bool) -> Result<Operation, Vec<ApiError>> {
    let patch = format!(r#"{{"qos": {{"min_iops": {iops}}}}}"#).into_bytes();
    let edit = Edit::Disk(ResourceEdit::Patch(name("data"), patch));
    let options = ChangeOptions { forces_minimums: force, ..ChangeOptions::default() };
    let operation = harness.node.submit_with(edit, options)?;
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    Ok(operation)
}

const MEASURED: &str = "capability_iops = \"measure\"";

#[test]
fn a_measured_capacity_is_used_for_admission_and_survives_a_restart() {
    let harness = harness(MEASURED);
    let error = promise(&harness, 1, false).unwrap_err().remove(0);
    assert_eq!(error.code, ErrorCode::Overcommitted);
    assert!(error.message.contains("suimon store measure fast"), "{error}");
    assert_eq!(harness.node.store("fast").unwrap().capacity_iops, None);

    let store = measure_well(&harness);
    let measured = store.last_measurement.unwrap();
    let patterns: Vec<_> = measured.pattern_results.iter().map(|figure| figure.pattern).collect();
    let patterns_measured =
        [StorePattern::RandomRead, StorePattern::RandomWrite, StorePattern::RandomMixed];
    assert_eq!(patterns, patterns_measured);
    assert_eq!(
        Some(measured.iops),
        measured.pattern_results.iter().map(|figure| figure.iops).min()
    );
    assert_eq!(store.capacity_iops, Some(measured.iops));
    assert_eq!(store.capacity_source, Some(CapacitySource::Measured));
    assert_eq!((measured.seconds, measured.measured_unix_ms), (1, 1_700_000_000_000));
    assert_eq!(harness.disks.admitted_minimums()[0].capacity.iops(), Some(measured.iops));
    harness.wait_events(EventKind::StoreMeasured.id(), 1);
    assert_eq!(harness.disks.files(STORE), ["data.raw"]);

    // The daemon is killed; the next one loads the measurement.
    let (state, devices, disks) = harness.kill_with_disks();
    let harness = Harness::with_disks(state, devices, disks);
    let repeated = harness.node.store("fast").unwrap();
    assert_eq!(repeated.last_measurement, Some(measured.clone()));
    assert_eq!(harness.disks.admitted_minimums()[0].capacity.iops(), Some(measured.iops));
    let max_iops = measured.iops * 9 / 10;
    promise(&harness, max_iops, false).unwrap();
    let error = promise(&harness, max_iops + 1, false).unwrap_err().remove(0);
    assert!(error.message.contains(&format!("{} IOPS (measured)", measured.iops)), "{error}");
    promise(&harness, max_iops + 1, true).unwrap();
}

#[test]
fn a_measurement_is_valid_only_for_the_measured_configuration_of_its_store() {
    let harness = harness(MEASURED);
    let measured = measure_well(&harness).last_measurement;
    assert!(measured.is_some());
    // A different queue depth invalidates the measurement; the original depth makes it valid again.
    harness.apply_ok(&config(&format!("{MEASURED}\ndepth_max = 4")));
    assert_eq!(harness.node.store("fast").unwrap().last_measurement, None);
    assert_eq!(harness.node.store("fast").unwrap().capacity_iops, None);
    harness.apply_ok(&config(MEASURED));
    assert_eq!(harness.node.store("fast").unwrap().last_measurement, measured);
    // With a declared capacity, the measurement is shown but not used.
    harness.apply_ok(&config("capability_iops = 7"));
    let store = harness.node.store("fast").unwrap();
    assert_eq!((store.capacity_iops, &store.last_measurement), (Some(7), &measured));
    assert_eq!(store.capacity_source, Some(CapacitySource::Declared));
    assert_eq!(harness.store.keys("measured"), ["fast"]);
    harness.apply_ok(&HostConfig::default());
    assert!(harness.store.keys("measured").is_empty());
    harness.apply_ok(&config(MEASURED));
    assert_eq!(harness.node.store("fast").unwrap().last_measurement, None);
}

#[test]
fn a_store_in_use_is_measured_only_on_request() {
    let harness = harness(MEASURED);
    harness.disks.connect(true);
    let error = begin(&harness, false).unwrap_err();
    assert_eq!((error.code, error.resource.as_deref()), (ErrorCode::InUse, Some("disk/data")));
    assert!(error.message.contains("--beside"), "{error}");
    let operation = begin(&harness, true).unwrap();
    // Meanwhile the disk stays in service, and changes of the store and a second measurement are
    // rejected.
    wait_until("the measurement is in progress", || {
        let step = harness.node.operation(operation.id).unwrap().current_step;
        step.is_some_and(|step| step.contains("MiB") || step.contains("random"))
    });
    assert_eq!(begin(&harness, true).unwrap_err().code, ErrorCode::Conflict);
    assert_eq!(harness.disks.served_counts(), (1, 1));
    let errors = harness.node.submit(Edit::Apply(Box::default())).unwrap_err();
    assert!(errors.iter().any(|error| error.code == ErrorCode::Conflict), "{errors:?}");
    promise(&harness, 5, true).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    harness.apply_ok(&HostConfig::default());
}

#[test]
fn a_cancelled_or_stopped_measurement_leaves_nothing() {
    let harness = harness(MEASURED);
    // The device does not complete requests.
    harness.disks.set_pace(RateLimit::default());
    let operation = begin(&harness, false).unwrap();
    wait_until("the measurement has opened its device", || {
        harness.disks.devices().open_count() == 1
    });
    harness.node.cancel_operation(operation.id).unwrap();
    let operation = harness.node.wait_operation(operation.id, DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Cancelled);
    assert_eq!(harness.disks.devices().open_count(), 0);
    assert_eq!(harness.disks.files(STORE), ["data.raw"]);
    assert_eq!(harness.node.store("fast").unwrap().last_measurement, None);

    let operation = begin(&harness, false).unwrap();
    wait_until("the measurement has opened its device", || {
        harness.disks.devices().open_count() == 1
    });
    harness.node.stop();
    let operation = harness.node.operation(operation.id).unwrap();
    assert_eq!(operation.state, OperationState::Cancelled, "{operation:?}");
    assert_eq!(harness.disks.devices().open_count(), 0);
}

#[test]
fn obstacles_to_a_measurement_are_reported_and_nothing_is_changed() {
    let harness = harness(MEASURED);
    let measure_disk = |store: &str, seconds| {
        harness
            .node
            .measure_store(&name(store), MeasureStoreRequest { seconds, while_in_use: false })
    };
    assert_eq!(measure_disk("none", 1).unwrap_err().code, ErrorCode::NotFound);
    for seconds in [0, 601] {
        let error = measure_disk("fast", seconds).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("seconds"), "{error}");
    }
    let files = harness.disks.store(STORE);
    files.set_change_limit(Some(0));
    let operation = measure(&harness);
    assert_eq!(operation.state, OperationState::Failed);
    let error = operation.error.unwrap();
    assert!(error.message.contains("0 MiB are free"), "{error}");
    assert_eq!(error.resource.as_deref(), Some("store/fast"));
    files.set_change_limit(None);
    let fails = Some(std::io::ErrorKind::PermissionDenied);
    harness.disks.set_pace(RateLimit { cost_per_poll: 8, failure: fails, ..RateLimit::default() });
    let operation = measure(&harness);
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(harness.disks.files(STORE), ["data.raw"]);
    assert_eq!(harness.node.store("fast").unwrap().last_measurement, None);
    assert!(harness.events(EventKind::StoreMeasured.id()).is_empty());
}

#[test]
fn an_estimated_capacity_is_shown_with_its_age_and_emits_an_event_if_too_low() {
    let harness = harness("capability_iops = 1000");
    let measured_at = Time::from_ns(5_000_000_000);
    let estimate = CapacityEstimate { iops: 640, sampled_at: measured_at };
    let status = suimon_storage_engine::WorkerStoreStatus {
        role: StoreRole::Sole,
        waiting: 0,
        in_flight_of_worker: 0,
        in_flight_of_all_workers: 0,
        depth_limit: 8,
        mean_latency_ns: 1,
        estimate: Some(estimate),
    };
    let view = StoreView {
        store: StoreId(0),
        worker: WorkerId(0),
        status,
        read_at: measured_at + Duration::from_millis(1500),
        flows: Vec::new(),
        is_current: true,
    };
    harness.disks.set_views(vec![view]);
    let estimate = harness.node.store("fast").unwrap().estimate.unwrap();
    assert_eq!((estimate.iops, estimate.age_ms), (640, 1500));
    // The estimate is informational: admission control uses the declared capacity.
    promise(&harness, 900, false).unwrap();

    let low = CapacityLow {
        low_for: Duration::from_secs(30),
        estimate_iops: 640,
        reserved_iops: 900,
        needed_iops: 1000,
    };
    let event = StoreEvent::CapacityLow(low);
    harness.disks.report(PlaneNotice::Qos { store: StoreId(0), event });
    wait_until("CapabilityLow is emitted", || {
        !harness.events(EventKind::CapabilityLow.id()).is_empty()
    });
    let event = &harness.wait_event(EventKind::CapabilityLow.id());
    assert_eq!(
        (event.subject.as_str(), event.fields["needed_iops"].as_str()),
        ("store/fast", "1000")
    );
    let duration = Duration::from_secs(90);
    let event = StoreEvent::CapacitySufficient {
        low_for: duration,
        estimate_iops: 1100,
        needed_iops: 1000,
    };
    harness.disks.report(PlaneNotice::Qos { store: StoreId(0), event });
    wait_until("CapabilityEnough is emitted", || {
        !harness.events(EventKind::CapabilityEnough.id()).is_empty()
    });
}
