//! Plans of changes that create images on request.

use std::time::Instant;

use suimon_contract::Plan;

use super::super::disk_images::PLAN_QUERY_TIMEOUT;
use super::super::required::IMAGE_PATHS;
use super::*;

fn plan(
    harness: &Harness,
    disk: &str,
    patch: &str,
    creates_image: bool,
) -> Result<Plan, Vec<ApiError>> {
    let edit = Edit::Disk(ResourceEdit::Patch(name(disk), patch.as_bytes().to_vec()));
    let options = ChangeOptions { creates_image, ..ChangeOptions::default() };
    harness.node.preview(&edit, options)
}

fn note(harness: &Harness, disk: &str, patch: &str) -> String {
    plan(harness, disk, patch, true).unwrap().steps[0].note.clone().unwrap()
}

#[test]
fn a_plan_says_that_a_stopped_vm_loses_the_disk() {
    let harness = with_stopped_vm();
    // Attempts to open the disk alternate with the state between them.
    let wait_for_note = |condition: &str, is_stopped: bool| {
        wait_until(condition, || {
            let plan = plan(&harness, "boot", "{}", true).unwrap();
            let note = plan.steps.first().and_then(|step| step.note.clone()).unwrap_or_default();
            note.contains("creates the empty image file")
                && note.contains("does not reconnect") == is_stopped
                && note.contains("stopped and started") == is_stopped
        });
    };
    wait_for_note("the plan contains the consequence", true);
    harness.disks.start_devices(true);
    wait_for_note("the plan contains the creation only", false);
}

#[test]
fn a_plan_without_the_size_of_the_image_is_refused_as_the_change_is() {
    let harness = with_data();
    let patch = r#"{"file": "new.raw", "size_bytes": null}"#;
    let errors = plan(&harness, "boot", patch, true).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].field.as_deref(), Some("size_bytes"));
    let operation = set(&harness, "boot", patch, true);
    let error = operation.error.unwrap();
    assert_eq!((error.field, error.message), (errors[0].field.clone(), errors[0].message.clone()));
    // An existing file has a size.
    plan(&harness, "boot", r#"{"size_bytes": null}"#, true).unwrap();
}

#[test]
fn texts_say_whether_the_image_is_empty() {
    let harness = with_data();
    let child = r#"{"file": "child.vhdx", "parent": "data.vhdx", "kind": "differencing"}"#;
    let text = note(&harness, "data", child);
    assert!(
        text.contains("as a child of /srv/fast/data.vhdx") && !text.contains("empty"),
        "{text}"
    );
    let error = plan(&harness, "data", child, false).unwrap_err().remove(0).message;
    assert!(error.contains("as a child of") && !error.contains("empty"), "{error}");
    let empty = r#"{"file": "new.vhdx"}"#;
    let text = note(&harness, "data", empty);
    assert!(text.contains("the empty image file /srv/fast/new.vhdx"), "{text}");
    let error = plan(&harness, "data", empty, false).unwrap_err().remove(0).message;
    assert!(error.contains("the empty image file"), "{error}");
}

/// Otherwise a plan would wait once for the kinds of images, and again for missing ones.
#[test]
fn the_queries_of_a_plan_have_one_time_limit() {
    let harness = with_data();
    let shared = harness.node.shared();
    let patch = br#"{"file": "new.vhdx"}"#.to_vec();
    let edit = Edit::Disk(ResourceEdit::Patch(name("data"), patch));
    let change = shared.check(&edit, ChangeOptions::default()).unwrap();
    assert_eq!(shared.missing_images(&change).len(), 1);
    let store = harness.disks.store(DISK_STORE);
    store.set_stalled(true);
    let change = shared.check(&edit, ChangeOptions::default()).unwrap();
    let note = change.plan.steps[0].note.clone().unwrap();
    assert!(note.contains("the kind of the image is unknown"), "{note}");
    let started = Instant::now();
    assert!(started >= change.query_deadline, "the first query has used the time");
    assert!(shared.missing_images(&change).is_empty(), "no store is queried any more");
    assert!(started.elapsed() < PLAN_QUERY_TIMEOUT, "{:?}", started.elapsed());
    store.set_stalled(false);
}

#[test]
fn the_effort_of_a_plan_is_linear_in_the_number_of_disks() {
    let harness = with_both_stores();
    let paths = |count: usize| {
        let disks = (0..count).map(|n| disk(&format!("d{n}"), "raw"));
        let disks = disks.collect::<Vec<_>>().concat();
        let edit = Edit::Apply(Box::new(host(&format!("{}{disks}", stores()))));
        let before = IMAGE_PATHS.get();
        harness.node.preview(&edit, ChangeOptions::default()).unwrap();
        IMAGE_PATHS.get() - before
    };
    let (paths_of_20, paths_of_80) = (paths(20), paths(80));
    assert!(paths_of_20 >= 20, "{paths_of_20}");
    assert!(
        paths_of_80 <= 4 * paths_of_20,
        "{paths_of_20} paths for 20 disks, {paths_of_80} for 80"
    );
}
