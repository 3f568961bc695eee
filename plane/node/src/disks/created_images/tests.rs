use super::*;
use crate::testing::MemoryStore;

#[test]
fn the_number_of_recorded_images_is_limited() {
    let state = Arc::new(DeferringStore::new(Arc::new(MemoryStore::default())));
    let images = CreatedImages::new(state.clone());
    let record = |number: usize| {
        let file = FileName::new(&format!("{number}.raw")).unwrap();
        CreatedImage::new(("fast", Path::new("/srv/fast")), &file, (None, None))
    };
    for number in 0..64 {
        images.add(record(number)).unwrap();
    }
    let error = images.add(record(64)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
    assert!(error.message.contains("/srv/fast/0.raw, /srv/fast/1.raw"), "{error}");
    // The image of a path that is recorded replaces the former one.
    images.add(record(0)).unwrap();
    let later = CreatedImages::new(state);
    later.load().unwrap();
    assert_eq!(later.lock().len(), 64);
    let stored = later.lock()[Path::new("/srv/fast/1.raw")].clone();
    later.forget(&stored);
    later.add(record(64)).unwrap();
}

const ID: FileId = FileId { device: 1, inode: 2, created_unix_ns: 3 };

fn record(id: Option<FileId>, written: Option<WrittenState>) -> CreatedImage {
    let file = FileName::new("boot.raw").unwrap();
    CreatedImage::new(("fast", Path::new("/srv/fast")), &file, (id, written))
}

fn written(len: u64, modified_unix_s: i64, modified_ns: u32) -> Option<WrittenState> {
    Some(WrittenState { len, modified_unix_s, modified_ns })
}

fn mark(is_vhdx: bool) -> Option<ContentFingerprint> {
    Some(ContentFingerprint { nonzero_pages: 1, digest: 5, is_vhdx })
}

/// Returns the record as a later daemon reads it.
fn loaded(record: &CreatedImage) -> CreatedImage {
    let loaded: CreatedImage =
        serde_json::from_slice(&serde_json::to_vec(record).unwrap()).unwrap();
    assert!(record.is_of_this_daemon && !loaded.is_of_this_daemon);
    loaded
}

#[test]
fn a_file_is_the_recorded_image_if_identity_length_and_modification_time_are_equal() {
    let id = |device, inode, created_unix_ns| Some(FileId { device, inode, created_unix_ns });
    let compare = |record: &CreatedImage, id, written| record.compare(id, written, |_| Some(true));
    let state = written(4096, 7, 8);
    for content in [None, mark(false)] {
        let with_content = |record: CreatedImage| match content {
            None => record,
            Some(_) => record.with_content(content),
        };
        let known_record = with_content(record(id(1, 2, 3), state));
        assert_eq!(compare(&known_record, id(1, 2, 3), state), FileComparison::Same);
        assert_eq!(
            compare(&known_record, id(9, 2, 3), state),
            FileComparison::Same,
            "the host was restarted"
        );
        assert_eq!(
            compare(&known_record, id(1, 2, 0), state),
            FileComparison::Same,
            "unknown creation time"
        );
        assert_eq!(compare(&known_record, id(1, 4, 3), state), FileComparison::Other);
        assert_eq!(
            compare(&known_record, id(1, 2, 4), state),
            FileComparison::Other,
            "the inode is reused"
        );
        for other in [written(4097, 7, 8), written(4096, 8, 8), written(4096, 7, 9)] {
            assert_eq!(
                compare(&known_record, id(1, 2, 3), other),
                FileComparison::Other,
                "written: {other:?}"
            );
        }
        assert_eq!(compare(&known_record, id(1, 2, 3), None), FileComparison::Unknown);
        assert_eq!(compare(&known_record, None, state), FileComparison::Unknown);
        let without_creation_time = with_content(record(id(1, 2, 0), state));
        assert_eq!(compare(&without_creation_time, id(1, 2, 3), state), FileComparison::Same);
        for unknown in [record(None, state), record(id(1, 2, 3), None)] {
            assert_eq!(
                compare(&with_content(unknown), id(1, 2, 3), state),
                FileComparison::Unknown
            );
        }
    }
}

#[test]
fn a_file_is_the_recorded_image_only_if_it_has_the_recorded_content() {
    let state = written(4096, 7, 8);
    let (id, later) = (Some(ID), written(4096, 9, 0));
    let recorded = record(id, state).with_content(mark(false));
    for record in [recorded.clone(), loaded(&recorded)] {
        let compare_content = |content| {
            record.compare(id, state, |current| {
                assert_eq!(Some(current), mark(false));
                content
            })
        };
        assert_eq!(compare_content(Some(true)), FileComparison::Same);
        assert_eq!(
            compare_content(Some(false)),
            FileComparison::Other,
            "the host has lost the modification time"
        );
        let later = record.compare(id, later, |_| panic!("the modification time differs"));
        assert_eq!(later, FileComparison::Other);
    }
    // A content that cannot be determined.
    let unknown = record(id, state).with_content(None);
    for (record, is_known) in [(recorded, true), (unknown, false)] {
        let compare = |record: &CreatedImage| {
            record.compare(id, state, |_| {
                assert!(is_known);
                None
            })
        };
        assert_eq!(compare(&record), FileComparison::Same, "the host has not crashed");
        assert_eq!(compare(&loaded(&record)), FileComparison::Unknown);
    }
}

/// Opening an image of format VHDX changes its modification time.
#[test]
fn a_vhdx_is_recognized_by_its_content() {
    let (id, state) = (Some(ID), written(4096, 7, 8));
    let recorded = record(id, state).with_content(mark(true));
    for record in [recorded.clone(), loaded(&recorded)] {
        for current_state in [state, written(4096, 9, 0)] {
            assert_eq!(record.compare(id, current_state, |_| Some(true)), FileComparison::Same);
            assert_eq!(record.compare(id, current_state, |_| Some(false)), FileComparison::Other);
        }
        assert_eq!(record.compare(id, written(4096, 9, 0), |_| None), FileComparison::Unknown);
        assert_eq!(record.compare(id, written(4097, 7, 8), |_| Some(true)), FileComparison::Other);
    }
}

/// An opened VHDX has another modification time although nothing was written to the disk.
#[test]
fn a_vhdx_of_unknown_content_is_neither_removed_nor_used() {
    let (id, opened) = (Some(ID), written(4096, 9, 0));
    let recorded = record(id, written(4096, 7, 8)).with_content(None).with_format(DiskFormat::Vhdx);
    for record in [recorded.clone(), loaded(&recorded)] {
        assert_eq!(record.compare(id, opened, |_| None), FileComparison::Unknown);
        assert_eq!(record.compare(id, written(4097, 9, 0), |_| None), FileComparison::Other);
    }
}

#[test]
fn a_record_without_length_and_modification_time_removes_no_file() {
    let earlier = r#"{"store": "/srv/fast", "file": "boot.raw", "device": 1, "inode": 2,
        "created_unix_ns": 3}"#;
    let record: CreatedImage = serde_json::from_str(earlier).unwrap();
    assert_eq!(record.compare(Some(ID), written(0, 0, 0), |_| Some(true)), FileComparison::Unknown);
}

#[test]
fn a_record_without_content_is_compared_without_it() {
    let earlier = r#"{"store": "/srv/fast", "store_name": "fast", "file": "boot.raw", "device": 1,
        "inode": 2, "created_unix_ns": 3,
        "written": {"len": 4096, "modified_unix_s": 7, "modified_ns": 8}}"#;
    let record: CreatedImage = serde_json::from_str(earlier).unwrap();
    let compare = |written| record.compare(Some(ID), written, |_| panic!("no content"));
    assert_eq!(compare(written(4096, 7, 8)), FileComparison::Same);
    assert_eq!(compare(written(4096, 8, 8)), FileComparison::Other);
}

/// The daemon was killed between the record and the rename of the image.
#[test]
fn a_record_ends_with_the_incomplete_image_that_it_refers_to() {
    let state = Arc::new(DeferringStore::new(Arc::new(MemoryStore::default())));
    let recorded = CreatedImages::new(state);
    let (store, file) = (Path::new("/srv/fast"), FileName::new("boot.raw").unwrap());
    let record = CreatedImage::new(("fast", store), &file, (None, None));
    recorded.add(record.clone()).unwrap();
    let files = suimon_ports::testing::MemoryStore::default();
    recorded.delete_unnamed_records(store, &files, &[]);
    let draft = suimon_image_files::incomplete_name(&file).unwrap();
    recorded.delete_unnamed_records(Path::new("/srv/other"), &files, std::slice::from_ref(&draft));
    assert_eq!(recorded.find(&record.path()), Some(record.clone()), "of another store");
    recorded.delete_unnamed_records(store, &files, &[draft]);
    assert_eq!(recorded.find(&record.path()), None);
}

#[test]
fn a_file_is_locked_while_it_is_compared() {
    let files = suimon_ports::testing::MemoryStore::default();
    let file = FileName::new("boot.raw").unwrap();
    drop(StoreFiles::create(&files, &file, 1).unwrap());
    for (matching, is_removed) in [
        (FileComparison::Other, false),
        (FileComparison::Unknown, false),
        (FileComparison::Same, true),
    ] {
        let result = remove_if_same(&files, &file, |_| {
            assert!(StoreFiles::open(&files, &file, FileLockMode::Read, 1).is_err());
            matching
        });
        assert_eq!(result.unwrap(), matching);
        assert_eq!(files.files().is_empty(), is_removed);
    }
}
