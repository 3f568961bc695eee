//! An image is created completely or not at all. A parent is accepted only if it is the disk that
//! the child references; otherwise an error states the difference.

use std::sync::Arc;

use suimon_image::testing::WriteOutcome;
use suimon_ports::RedoRecords;
use suimon_ports::testing::{MemoryRedoRecords, MemoryStore};
use suimon_ports::{FileLockMode, FileName, StoreFiles};

use super::incomplete_image::IncompleteImage;
use super::*;

const MB: u64 = 1 << 20;
const NOW: u64 = 1_700_000_000;

pub(crate) fn name(name: &str) -> FileName {
    FileName::new(name).unwrap()
}

/// Returns a disk plan without contradictions, of this format and kind.
pub(crate) fn plan(format: DiskFormat, kind: DiskKind, file: &str) -> DiskPlan {
    DiskPlan {
        format,
        kind: Some(kind),
        file: Some(name(file)),
        size_bytes: (kind != DiskKind::Differencing).then_some(3 * MB),
        parent: None,
        is_read_only: false,
        logical_sector_bytes: 512,
        physical_sector_bytes: 4096,
        block_bytes: (format == DiskFormat::Vhdx).then_some(MB),
    }
}

pub(crate) fn child(format: DiskFormat, file: &str, parent: &str) -> DiskPlan {
    DiskPlan { parent: Some(name(parent)), ..plan(format, DiskKind::Differencing, file) }
}

/// Calls `run` with consecutive numbers from `first` as random values.
pub(crate) fn seeded<T>(first: u128, run: impl FnOnce(&mut HostInputs<'_>) -> T) -> T {
    recorded(first, None, run)
}

/// Calls `run` with consecutive numbers from `first` as random values, and with redo records.
pub(crate) fn recorded<T>(
    first: u128,
    records: Option<&MemoryRedoRecords>,
    run: impl FnOnce(&mut HostInputs<'_>) -> T,
) -> T {
    let records = records.map(|records| records as &dyn RedoRecords);
    let mut next = first;
    let mut random = || {
        next += 1;
        next.to_be_bytes()
    };
    run(&mut HostInputs {
        random: &mut random,
        now_unix_s: NOW,
        redo_records: records,
        remaining_redo_records: RemainingRecordPolicy::Redo,
    })
}

fn create_disk(files: &Arc<dyn StoreFiles>, plan: &DiskPlan, first: u128) -> Result<(), DiskError> {
    seeded(first, |seeds| create(files, plan, seeds))
}

fn open_disk(files: &dyn StoreFiles, plan: &DiskPlan) -> Result<OpenedDisk, DiskError> {
    seeded(900, |seeds| open(files, plan, seeds))
}

fn store() -> (MemoryStore, Arc<dyn StoreFiles>) {
    let store = MemoryStore::default();
    store.set_time(NOW);
    (store.clone(), Arc::new(store))
}

fn formats() -> Vec<DiskPlan> {
    use DiskFormat::{Raw, Vhd, Vhdx};
    use DiskKind::{Dynamic, Fixed};
    [(Raw, Fixed), (Raw, Dynamic), (Vhd, Fixed), (Vhd, Dynamic), (Vhdx, Fixed), (Vhdx, Dynamic)]
        .map(|(format, kind)| plan(format, kind, "disk"))
        .into()
}

/// Returns the name of the fault variant of an error.
fn fault<T>(result: Result<T, DiskError>) -> String {
    let text = format!("{:?}", result.err().expect("an error").fault);
    let fault_name = text.trim_start_matches("Store(");
    fault_name.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

#[test]
fn a_created_image_opens_with_its_size() {
    for plan in formats() {
        let (store, files) = store();
        assert!(open_disk(files.as_ref(), &plan).err().unwrap().is_missing());
        assert!(!exists(files.as_ref(), &plan).unwrap());
        create_disk(&files, &plan, 1).unwrap();
        assert!(exists(files.as_ref(), &plan).unwrap());
        assert_eq!(fault(create_disk(&files, &plan, 1)), "Exists");
        let disk = open_disk(files.as_ref(), &plan).unwrap();
        assert_eq!((disk.geometry.size_bytes, disk.layer_files.len()), (3 * MB, 1), "{plan:?}");
        assert_eq!(
            (disk.geometry.logical_sector_bytes, disk.geometry.physical_sector_bytes),
            (512, 4096)
        );
        assert_eq!(fault(open_disk(files.as_ref(), &plan)), "InUse");
        close(disk.layer_stack, "disk").unwrap();
        let reader = DiskPlan { is_read_only: true, ..plan };
        let (_one, _other) =
            (open_disk(&store, &reader).unwrap(), open_disk(&store, &reader).unwrap());
        assert_eq!(store.files().len(), 1);
    }
}

#[test]
fn a_crash_during_creation_leaves_no_disk_or_a_complete_one() {
    for plan in formats() {
        let (store, files) = store();
        create_disk(&files, &plan, 1).unwrap();
        let ops = store.ops().len();
        for crash_point in 0..=ops {
            for of_all in [
                WriteOutcome::Persisted,
                WriteOutcome::Lost,
                WriteOutcome::Torn(0x5555_5555_5555_5555),
            ] {
                let crashed = store.store_after_crash(crash_point, || of_all);
                let swept = remove_all_incomplete(&crashed, &[]).unwrap();
                let files: Arc<dyn StoreFiles> = Arc::new(crashed.clone());
                match open_disk(files.as_ref(), &plan) {
                    Ok(disk) => {
                        assert_eq!(
                            (disk.geometry.size_bytes, crash_point),
                            (3 * MB, ops),
                            "{plan:?}"
                        );
                    }
                    Err(error) => {
                        assert!(
                            error.is_missing() && crash_point < ops,
                            "{crash_point} {plan:?}: {error}"
                        );
                        assert!(crashed.files().is_empty(), "{crash_point}: {swept:?}");
                        create_disk(&files, &plan, 1).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn a_full_store_is_reported_and_no_file_remains() {
    for plan in formats() {
        for change_limit in 0.. {
            let (store, files) = store();
            store.set_change_limit(Some(change_limit));
            match create_disk(&files, &plan, 1) {
                Ok(()) => break,
                Err(error) => {
                    let has_no_room = matches!(*error.fault, DiskFault::NoSpace { .. });
                    assert!(error.is_full() || has_no_room, "{change_limit}: {error}");
                    assert_eq!(error.file, "disk", "{change_limit}");
                    let text = error.to_string();
                    assert!(text.contains("free space") || text.contains("full"), "{text}");
                    assert!(store.files().is_empty(), "{change_limit}");
                }
            }
        }
    }
}

#[test]
fn an_incomplete_file_is_no_disk_and_one_in_use_is_kept() {
    let (store, files) = store();
    let plan = plan(DiskFormat::Vhdx, DiskKind::Dynamic, "sub/disk");
    let draft = IncompleteImage::name_for(&name("sub/disk")).unwrap();
    drop(files.create(&draft, 1).unwrap());
    create_disk(&files, &plan, 1).unwrap();
    assert_eq!(store.files().keys().cloned().collect::<Vec<_>>(), [name("sub/disk")]);
    let making = files.create(&draft, 1).unwrap();
    assert!(remove_all_incomplete(files.as_ref(), &[]).unwrap().is_empty());
    let second_plan = DiskPlan { file: Some(name("sub/disk")), ..plan };
    files.remove(&name("sub/disk")).unwrap();
    assert_eq!(fault(create_disk(&files, &second_plan, 1)), "InUse");
    drop(making);
    assert_eq!(remove_all_incomplete(files.as_ref(), &[]).unwrap(), [draft]);
}

#[test]
fn errors_of_impossible_plans_state_the_permitted_values() {
    use DiskFormat::{PassThrough, Raw, Vhd, Vhdx};
    use DiskKind::{Differencing, Dynamic, Fixed};
    let (_, files) = store();
    let changed_plan = |format, kind, change: &dyn Fn(&mut DiskPlan)| {
        let mut plan = plan(format, kind, "disk");
        change(&mut plan);
        plan
    };
    for (field, plan) in [
        ("size", changed_plan(Raw, Fixed, &|plan| plan.size_bytes = None)),
        ("size", changed_plan(Raw, Fixed, &|plan| plan.size_bytes = Some(0))),
        ("size", changed_plan(Raw, Fixed, &|plan| plan.size_bytes = Some(513))),
        ("size", changed_plan(Raw, Fixed, &|plan| plan.size_bytes = Some(u64::MAX - 511))),
        ("size", changed_plan(Vhd, Dynamic, &|plan| plan.size_bytes = Some((2040 << 30) + 512))),
        ("size", changed_plan(Vhdx, Dynamic, &|plan| plan.size_bytes = Some((64 << 40) + 512))),
        (
            "size",
            changed_plan(Vhdx, Dynamic, &|plan| {
                (plan.logical_sector_bytes, plan.size_bytes) = (4096, Some(512));
            }),
        ),
        ("logical_sector", changed_plan(Raw, Fixed, &|plan| plan.logical_sector_bytes = 1024)),
        ("logical_sector", changed_plan(Vhd, Fixed, &|plan| plan.logical_sector_bytes = 4096)),
        ("physical_sector", changed_plan(Raw, Fixed, &|plan| plan.physical_sector_bytes = 0)),
        (
            "physical_sector",
            changed_plan(Raw, Fixed, &|plan| {
                (plan.logical_sector_bytes, plan.physical_sector_bytes) = (4096, 512);
            }),
        ),
        ("block_bytes", changed_plan(Raw, Fixed, &|plan| plan.block_bytes = Some(MB))),
        ("block_bytes", changed_plan(Vhd, Dynamic, &|plan| plan.block_bytes = Some(4 * MB))),
        ("block_bytes", changed_plan(Vhdx, Dynamic, &|plan| plan.block_bytes = Some(3 * MB))),
        ("kind", changed_plan(Raw, Differencing, &|_| {})),
        ("kind", changed_plan(PassThrough, Dynamic, &|plan| plan.file = None)),
        ("file", changed_plan(PassThrough, Fixed, &|_| {})),
        ("file", changed_plan(Raw, Fixed, &|plan| plan.file = None)),
        ("parent", changed_plan(Vhd, Dynamic, &|plan| plan.parent = Some(name("p")))),
        ("parent", changed_plan(Vhd, Differencing, &|plan| plan.parent = Some(name("disk")))),
        ("parent", changed_plan(Vhd, Differencing, &|_| {})),
    ] {
        let error = create_disk(&files, &plan, 1).unwrap_err();
        assert!(
            matches!(
                &*error.fault,
                DiskFault::InvalidPlan { field: field_name, .. } if *field_name == field
            ),
            "{field}: {error}"
        );
    }
}

#[test]
fn an_image_that_is_not_as_planned_is_refused() {
    let (_, files) = store();
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let dynamic = plan(format, DiskKind::Dynamic, format.as_str());
        create_disk(&files, &dynamic, 1).unwrap();
        let fixed = DiskPlan { kind: Some(DiskKind::Fixed), ..dynamic.clone() };
        assert_eq!(fault(open_disk(files.as_ref(), &fixed)), "PlanMismatch");
        let other = match format {
            DiskFormat::Vhd => DiskFormat::Vhdx,
            _ => DiskFormat::Vhd,
        };
        let other = DiskPlan { format: other, block_bytes: None, ..dynamic.clone() };
        assert_eq!(fault(open_disk(files.as_ref(), &other)), "Image");
        if format == DiskFormat::Vhdx {
            let sectors = DiskPlan { logical_sector_bytes: 4096, ..dynamic.clone() };
            assert_eq!(fault(open_disk(files.as_ref(), &sectors)), "PlanMismatch");
        }
        // A refused file is not locked.
        open_disk(files.as_ref(), &dynamic).unwrap();
    }
}

/// Creates a store with `base`, its child `sub/mid`, and that image's child `top`.
fn chain(format: DiskFormat) -> (MemoryStore, Arc<dyn StoreFiles>) {
    let (store, files) = store();
    create_disk(&files, &plan(format, DiskKind::Dynamic, "base"), 1).unwrap();
    create_disk(&files, &child(format, "sub/mid", "base"), 100).unwrap();
    create_disk(&files, &child(format, "top", "sub/mid"), 200).unwrap();
    (store, files)
}

#[test]
fn a_chain_is_found_by_the_paths_that_its_images_record() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (store, files) = chain(format);
        let top = child(format, "top", "sub/mid");
        for plan in [top.clone(), DiskPlan { parent: None, ..top }] {
            let disk = open_disk(files.as_ref(), &plan).unwrap();
            assert_eq!(disk.layer_files, [name("top"), name("sub/mid"), name("base")]);
            assert_eq!(disk.geometry.size_bytes, 3 * MB);
            // Parents are opened for reading and shared.
            assert!(store.open(&name("base"), FileLockMode::Read, 1).is_ok());
            assert!(store.open(&name("base"), FileLockMode::Write, 1).is_err());
            close(disk.layer_stack, "top").unwrap();
        }
    }
}

#[test]
fn an_image_states_its_kind_where_the_plan_does_not() {
    let (_, files) = store();
    for plan in formats().into_iter().filter(|plan| plan.format != DiskFormat::Raw) {
        create_disk(&files, &plan, 1).unwrap();
        let kind = plan.kind;
        let plan = DiskPlan { kind: None, size_bytes: None, block_bytes: None, ..plan };
        let disk = open_disk(files.as_ref(), &plan).unwrap();
        assert_eq!(Some(disk.kind), kind);
        close(disk.layer_stack, "disk").unwrap();
        // A planned parent contradicts an image without parent.
        let child = DiskPlan { parent: Some(name("other")), ..plan.clone() };
        let error = open_disk(files.as_ref(), &child).err().unwrap();
        assert!(
            matches!(&*error.fault, DiskFault::PlanMismatch { field: "parent", .. }),
            "{error}"
        );
        files.remove(&name("disk")).unwrap();
    }
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (_, files) = chain(format);
        let top = DiskPlan { kind: None, parent: None, ..child(format, "top", "sub/mid") };
        let disk = open_disk(files.as_ref(), &top).unwrap();
        assert_eq!((disk.kind, disk.layer_files.len()), (DiskKind::Differencing, 3));
        close(disk.layer_stack, "top").unwrap();
        // A planned value that contradicts the image is refused, with the name of the key.
        let dynamic = DiskPlan { kind: Some(DiskKind::Dynamic), ..top.clone() };
        let error = open_disk(files.as_ref(), &dynamic).err().unwrap().to_string();
        assert!(error.contains("kind is dynamic in the configuration and differencing"), "{error}");
        let base = DiskPlan { parent: Some(name("base")), ..top };
        assert!(open_disk(files.as_ref(), &base).is_err());
        // A new file with a parent is differencing.
        let new = DiskPlan { kind: None, ..child(format, "new", "base") };
        create_disk(&files, &new, 500).unwrap();
        assert_eq!(open_disk(files.as_ref(), &new).unwrap().kind, DiskKind::Differencing);
    }
}

#[test]
fn a_moved_parent_is_found_beside_the_child() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let top = DiskPlan { parent: None, ..child(format, "top", "sub/mid") };
        let (_, files) = chain(format);
        files.rename(&name("base"), &name("sub/base")).unwrap();
        let disk = open_disk(files.as_ref(), &top).unwrap();
        assert_eq!(disk.layer_files, [name("top"), name("sub/mid"), name("sub/base")]);
        close(disk.layer_stack, "top").unwrap();
        // Another image at the former name does not hide the parent.
        create_disk(&files, &plan(format, DiskKind::Dynamic, "base"), 5000).unwrap();
        let disk = open_disk(files.as_ref(), &top).unwrap();
        assert_eq!(disk.layer_files.last(), Some(&name("sub/base")));
        close(disk.layer_stack, "top").unwrap();
        // The other image is reported if the parent exists under no name.
        files.remove(&name("sub/base")).unwrap();
        let error = open_disk(files.as_ref(), &top).err().unwrap();
        assert!(error.to_string().contains("base is"), "{error}");
        // With a planned parent, no other name is tried.
        let (_, files) = chain(format);
        files.rename(&name("base"), &name("sub/base")).unwrap();
        let child_plan = child(format, "sub/mid", "base");
        let error = open_disk(files.as_ref(), &child_plan).err().unwrap();
        assert!(
            error.to_string().contains("not found: searched base; move the parent there"),
            "{error}"
        );
        open_disk(files.as_ref(), &child(format, "sub/mid", "sub/base")).unwrap();
    }
}

#[test]
fn a_parent_that_is_missing_changed_or_another_is_named() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let top = DiskPlan { parent: None, ..child(format, "top", "sub/mid") };
        let (_, files) = chain(format);
        files.rename(&name("base"), &name("elsewhere")).unwrap();
        let error = open_disk(files.as_ref(), &top).err().unwrap();
        assert_eq!(error.file, "sub/mid");
        let text = error.to_string();
        assert!(text.contains(r"the image records ..\base"), "{text}");
        assert!(text.contains("searched base, sub/base; move the parent there"), "{text}");
        // The child is not locked. It can be opened when its parent is available again.
        files.rename(&name("elsewhere"), &name("base")).unwrap();
        open_disk(files.as_ref(), &top).unwrap();

        let (store, files) = chain(format);
        store.set_time(NOW + 60);
        let base = open_disk(files.as_ref(), &plan(format, DiskKind::Dynamic, "base")).unwrap();
        let file = &base.layer_stack.layers[0].file;
        let mut bytes = [0; 512];
        file.read_at(0, &mut bytes).unwrap();
        file.write_at(0, &bytes).unwrap();
        close(base.layer_stack, "base").unwrap();
        let error = open_disk(files.as_ref(), &top).err().unwrap();
        assert_eq!(error.file, "sub/mid");
        assert!(matches!(*error.fault, DiskFault::ParentChanged { .. }), "{error}");

        let (store, files) = chain(format);
        files.remove(&name("base")).unwrap();
        store.set_time(NOW);
        create_disk(&files, &plan(format, DiskKind::Dynamic, "base"), 5000).unwrap();
        let actual = fault(open_disk(files.as_ref(), &top));
        let expected = if format == DiskFormat::Vhd { "WrongParent" } else { "ParentChanged" };
        assert_eq!(actual, expected);
    }
}

#[test]
fn a_cyclic_or_too_long_chain_is_an_error() {
    for format in [DiskFormat::Vhd, DiskFormat::Vhdx] {
        let (_, files) = chain(format);
        files.remove(&name("base")).unwrap();
        files.rename(&name("sub/mid"), &name("sub/x")).unwrap();
        create_disk(&files, &plan(format, DiskKind::Dynamic, "sub/base"), 1).unwrap();
        create_disk(&files, &child(format, "sub/mid", "sub/base"), 100).unwrap();
        // The image refers to a parent with the name that the image itself has now.
        files.replace(&name("sub/mid"), &name("sub/base")).unwrap();
        let base_plan = DiskPlan { parent: None, ..child(format, "sub/base", "sub/x") };
        assert_eq!(fault(open_disk(files.as_ref(), &base_plan)), "ParentCycle");
        let (_, files) = store();
        create_disk(&files, &plan(format, DiskKind::Dynamic, "0"), 1).unwrap();
        for number in 1..=LAYERS_MAX {
            let plan = child(format, &number.to_string(), &(number - 1).to_string());
            create_disk(&files, &plan, 1 + number as u128 * 10).unwrap();
        }
        let longest = LAYERS_MAX - 1;
        let last = |number: usize| child(format, &number.to_string(), &(number - 1).to_string());
        // Opening a parent for writing invalidates its children, so the child is opened first.
        assert_eq!(fault(open_disk(files.as_ref(), &last(LAYERS_MAX))), "TooManyLayers");
        let disk = open_disk(files.as_ref(), &last(longest)).unwrap();
        assert_eq!(disk.layer_files.len(), LAYERS_MAX);
    }
}

#[test]
fn recorded_paths_cannot_leave_the_store() {
    use suimon_vhd::{CreateParameters, NewVhd, Parent, ParentLocator, SizeEncoding};
    let (_, files) = store();
    let hostile = [r"..\..\etc\passwd", r"\etc\passwd", r"C:\p", "/etc/passwd", "a:b", r".."];
    let mut locators: Vec<_> =
        hostile.iter().map(|path| ParentLocator::WindowsRelative((*path).to_owned())).collect();
    // The last component is the child's own name.
    locators.push(ParentLocator::WindowsAbsolute(r"C:\elsewhere\top".to_owned()));
    let parent =
        Parent { unique_id: [7; 16], modified_s_since_2000: 0, name: "../x".to_owned(), locators };
    let image = NewVhd {
        disk: CreateParameters::Differencing { block_size: 2 << 20, parent },
        size: 3 * MB,
        size_encoding: SizeEncoding::Exact,
        unique_id: [8; 16],
        created_s_since_2000: 0,
    };
    image.create(files.create(&name("top"), 512).unwrap().as_ref()).unwrap();
    let top = DiskPlan { parent: None, ..child(DiskFormat::Vhd, "top", "x") };
    let error = open_disk(files.as_ref(), &top).err().unwrap();
    // Only the last components of paths are searched, in the child's directory.
    assert!(error.to_string().contains("searched passwd, p, a:b, x;"), "{error}");
}

#[test]
fn metadata_of_an_opened_image_is_verified() {
    let (store, files) = store();
    for plan in formats().into_iter().filter(|plan| plan.format == DiskFormat::Vhdx) {
        create_disk(&files, &plan, 1).unwrap();
        let disk = open_disk(&store, &plan).unwrap();
        verify_metadata(&disk, &plan).unwrap();
        // One of two region tables (MS-VHDX, 2.2.3).
        disk.layer_stack.layers[0].file.write_at(192 << 10, &[0xff; 64 << 10]).unwrap();
        assert!(verify_metadata(&disk, &plan).is_err());
        close(disk.layer_stack, "disk").unwrap();
        files.remove(&name("disk")).unwrap();
    }
    for plan in formats() {
        create_disk(&files, &plan, 1).unwrap();
        let disk = open_disk(&store, &plan).unwrap();
        verify_metadata(&disk, &plan).unwrap();
        close(disk.layer_stack, "disk").unwrap();
        files.remove(&name("disk")).unwrap();
    }
}
