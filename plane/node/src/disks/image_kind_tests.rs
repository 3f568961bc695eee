//! Tests of existing images whose kind and parent are not configured.

use suimon_contract::{DiskKind, ErrorCode, HostConfig, OperationState, StorageState};
use suimon_ports::{FileName, StoreFiles};

use crate::testing::{DISK_STORE, Harness, host, name};
use crate::{DiskFileJob, Edit, ResourceEdit};

#[path = "unchecked_tests.rs"]
mod unchecked_tests;

const CHILD: &str = r#"
    [[store]]
    name = "fast"
    path = "/srv/fast"
    [[disk]]
    name = "data"
    store = "fast"
    format = "vhdx"
    file = "child.vhdx"
    nbd = { socket = "/run/nbd.sock" }
"#;

/// Creates a store with `base.vhdx` and its child `child.vhdx`, and no disk.
fn with_child() -> Harness {
    let harness = Harness::with_store();
    let with_file = |file_key: &str| host(&CHILD.replace("file = \"child.vhdx\"", file_key));
    harness.apply_ok(&with_file("file = \"base.vhdx\"\nsize_bytes = 8388608"));
    let request = suimon_contract::SnapshotDiskRequest { file: "child.vhdx".parse().unwrap() };
    let operation =
        harness.node.start_disk_job(&name("data"), DiskFileJob::Snapshot(request)).unwrap();
    let operation = harness.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded);
    harness.apply_ok(&HostConfig::default());
    harness
}

fn patch(harness: &Harness, patch: &str) -> suimon_contract::Operation {
    harness.change(Edit::Disk(ResourceEdit::Patch(name("data"), patch.as_bytes().to_vec())))
}

fn rename(harness: &Harness, from: &str, to: &str) {
    let file = |name: &str| FileName::new(name).unwrap();
    harness.disks.store(DISK_STORE).rename(&file(from), &file(to)).unwrap();
}

#[test]
fn an_existing_child_needs_neither_kind_nor_parent() {
    let harness = with_child();
    harness.apply_ok(&host(CHILD));
    let disk = harness.node.disk("data").unwrap();
    assert_eq!((disk.state, disk.kind), (StorageState::Ready, Some(DiskKind::Differencing)));
    assert_eq!(disk.parent.unwrap().as_str(), "base.vhdx");
    assert_eq!((disk.config.kind, disk.config.parent), (None, None));
    // A configured kind that contradicts the image is rejected, and the disk stays in service.
    for change in [r#"{"kind": "dynamic"}"#, r#"{"kind": "fixed"}"#] {
        let error = patch(&harness, change).error.unwrap();
        assert_eq!(error.code, ErrorCode::InvalidValue, "{change}: {error}");
        assert!(error.message.contains("differencing in the image"), "{change}: {error}");
        let disk = harness.node.disk("data").unwrap();
        assert_eq!((disk.state, disk.config.kind), (StorageState::Ready, None), "{change}");
    }
    let named_parent = patch(&harness, r#"{"kind": "differencing", "parent": "base.vhdx"}"#);
    assert_eq!(named_parent.state, OperationState::Succeeded, "{named_parent:?}");
}

#[test]
fn a_missing_parent_is_named_with_commands_and_can_be_set() {
    let harness = with_child();
    rename(&harness, "base.vhdx", "moved/parent.vhdx");
    let operation = harness.apply(&host(CHILD));
    let error = operation.error.unwrap();
    for part in [
        r"the image records .\base.vhdx; searched base.vhdx;",
        "suimon disk set data --parent PARENT",
        "suimon image relink --store fast child.vhdx PARENT",
    ] {
        assert!(error.message.contains(part), "{part}: {error}");
    }
    let mut config = host(CHILD);
    config.disks[0].parent = Some("moved/parent.vhdx".parse().unwrap());
    harness.apply_ok(&config);
    // The parent is renamed again while the disk is open; then the configuration is updated.
    rename(&harness, "moved/parent.vhdx", "again.vhdx");
    let operation = patch(&harness, r#"{"parent": "again.vhdx"}"#);
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    let disk = harness.node.disk("data").unwrap();
    assert_eq!((disk.state, disk.parent.unwrap().as_str()), (StorageState::Ready, "again.vhdx"));
    // A missing parent is rejected, and the disk stays in service.
    let error = patch(&harness, r#"{"parent": "nothing.vhdx"}"#).error.unwrap();
    assert!(error.message.contains("searched nothing.vhdx"), "{error}");
    assert_eq!(harness.node.disk("data").unwrap().state, StorageState::Ready);
}

/// A disk that opens the base for writing before its child would make the child unusable. The
/// configuration of the child names no parent.
#[test]
fn no_disk_writes_to_a_parent_named_only_by_an_image() {
    let harness = with_child();
    let config_of = |base: &str, child: &str| {
        let base = format!(
            "[[disk]]\nname = \"base\"\nstore = \"fast\"\nformat = \"vhdx\"\n{base}\n\
             nbd = {{ socket = \"/run/nbd.sock\" }}\n"
        );
        host(&format!("{}{base}", CHILD.replace("child.vhdx", child)))
    };
    let ready = |disk: &str| harness.node.disk(disk).unwrap().state == StorageState::Ready;
    let refuse = |child: &str| {
        let error = harness.apply(&config_of("file = \"base.vhdx\"", child)).error.unwrap();
        assert_eq!(error.code, ErrorCode::Conflict, "{error}");
        assert!(error.message.contains("disk/data") && error.message.contains("read_only"));
        harness.apply_ok(&HostConfig::default());
    };
    refuse("child.vhdx");
    // The base is also protected if it is the parent of a parent.
    harness.apply_ok(&host(CHILD));
    let request = suimon_contract::SnapshotDiskRequest { file: "top.vhdx".parse().unwrap() };
    let operation =
        harness.node.start_disk_job(&name("data"), DiskFileJob::Snapshot(request)).unwrap();
    let operation = harness.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded);
    harness.apply_ok(&HostConfig::default());
    refuse("top.vhdx");
    // Both disks may be open if the base is read-only, and the child is intact.
    harness.apply_ok(&config_of("file = \"base.vhdx\"\nread_only = true", "top.vhdx"));
    assert!(ready("base") && ready("data"));
    harness.apply_ok(&HostConfig::default());
    // An image file of no configured disk does not protect its parent.
    harness.apply_ok(&config_of("file = \"other.vhdx\"\nsize_bytes = 8388608", "top.vhdx"));
    assert!(ready("base") && ready("data"));
}

/// A host file from before a snapshot names the parent, and the daemon has no stored state of the
/// disk, as on another node after a failure.
#[test]
fn a_new_disk_does_not_write_to_the_parent_of_an_image_in_its_store() {
    let harness = with_child();
    let with_base = |keys: &str| {
        host(&CHILD.replace("file = \"child.vhdx\"", &format!("file = \"base.vhdx\"\n{keys}")))
    };
    // With a size, too: the file is neither replaced nor created.
    for keys in ["", "size_bytes = 8388608"] {
        let error = harness.apply(&with_base(keys)).error.unwrap();
        assert_eq!(error.code, ErrorCode::Conflict, "{error}");
        assert!(error.message.contains("base.vhdx is the parent of child.vhdx"), "{error}");
    }
    harness.apply_ok(&with_base("read_only = true"));
    harness.apply_ok(&HostConfig::default());
    // The refused attempts have not changed the parent.
    harness.apply_ok(&host(CHILD));
    assert_eq!(harness.node.disk("data").unwrap().state, StorageState::Ready);
    harness.apply_ok(&HostConfig::default());
    // Without the child, the parent is an ordinary image.
    let child = FileName::new("child.vhdx").unwrap();
    harness.disks.store(DISK_STORE).remove(&child).unwrap();
    harness.apply_ok(&with_base(""));
    assert_eq!(harness.node.disk("data").unwrap().state, StorageState::Ready);
}

/// The configuration contains neither the former kind nor the new one.
#[test]
fn a_plan_names_the_kind_of_another_image() {
    let harness = with_child();
    harness.apply_ok(&host(CHILD));
    let convert = suimon_contract::ConvertDiskRequest {
        file: "fixed.vhdx".parse().unwrap(),
        format: suimon_contract::DiskFormat::Vhdx,
        kind: Some(DiskKind::Fixed),
    };
    let job = DiskFileJob::Convert(convert);
    let operation = harness.node.start_disk_job(&name("data"), job).unwrap();
    let operation = harness.node.wait_operation(operation.id, crate::testing::DEADLINE).unwrap();
    assert_eq!(operation.state, OperationState::Succeeded, "{operation:?}");
    let preview = |patch: &str| {
        let edit = Edit::Disk(ResourceEdit::Patch(name("data"), patch.as_bytes().to_vec()));
        // Some of the images do not exist.
        let options = crate::ChangeOptions { creates_image: true, ..Default::default() };
        let mut step = harness.node.preview(&edit, options).unwrap().steps.remove(0);
        assert!(step.note.take().unwrap().starts_with("creates the empty image file"));
        step.to_string()
    };
    let planned = "± disk/data replace: file child.vhdx → fixed.vhdx, kind differencing → fixed";
    assert_eq!(preview(r#"{"file": "fixed.vhdx"}"#), planned);
    // A new file has the default kind.
    assert_eq!(
        preview(r#"{"file": "new.vhdx", "size_bytes": 8388608}"#),
        "± disk/data replace: file child.vhdx → new.vhdx, kind differencing → dynamic, size_bytes \
         none → 8 MiB"
    );
    // The change itself has the same plan.
    let changed = patch(&harness, r#"{"file": "fixed.vhdx"}"#);
    assert_eq!(changed.state, OperationState::Succeeded, "{changed:?}");
    assert_eq!(changed.plan.unwrap().steps[0].to_string(), planned);
    // Another image of the same kind, and a configured kind that is that of the image.
    rename(&harness, "base.vhdx", "other.vhdx");
    assert_eq!(
        preview(r#"{"file": "other.vhdx"}"#),
        "± disk/data replace: file fixed.vhdx → other.vhdx, kind fixed → dynamic"
    );
    assert_eq!(
        preview(r#"{"file": "new.vhdx", "kind": "fixed", "size_bytes": 8388608}"#),
        "± disk/data replace: file fixed.vhdx → new.vhdx, size_bytes none → 8 MiB"
    );
}
