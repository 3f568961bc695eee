use suimon_lab_run::{MachineInfo, RunOrigin};

use super::*;

/// Returns an empty run.
pub(crate) fn run(id: String) -> Run {
    Run {
        format_version: FORMAT_VERSION,
        id,
        plan_text: String::new(),
        origin: RunOrigin::Real,
        scale: "quick".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        duration_s: 0.0,
        profiles: false,
        command: String::new(),
        machine: MachineInfo::default(),
        setup: Vec::new(),
        cases: Vec::new(),
        measures: Vec::new(),
        repetitions: Vec::new(),
        skipped_work: Vec::new(),
        aborted_reason: None,
        simulated_figures: Vec::new(),
    }
}

#[test]
fn completed_repetitions_are_kept_if_the_run_did_not_end() {
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsFolder::new(folder.path().join("new/folder"));
    assert!(results.ids().unwrap().is_empty());
    let folder = results.create_run_folder("web").unwrap();
    folder.write_header(&run(folder.id())).unwrap();
    for repetition in 0..2 {
        let part = Repetition {
            case_id: "a".to_owned(),
            repetition,
            duration_s: 2.0,
            ..Repetition::default()
        };
        folder.add(&part).unwrap();
    }
    // Simulates a power failure while the third repetition is written.
    let path = folder.path().join(REPETITIONS_FILE);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(b"{\"case\":\"a\",\"repet");
    fs::write(&path, bytes).unwrap();
    let found_run = results.find("web").unwrap();
    assert_eq!(found_run.id(), folder.id());
    assert!(!found_run.is_complete());
    let read = found_run.load().unwrap();
    assert_eq!((read.repetitions.len(), read.duration_s), (2, 4.0));
    folder.finish(&read).unwrap();
    assert!(results.find(&folder.id()).unwrap().is_complete());
    assert_eq!(results.ids().unwrap(), [folder.id()]);
}

#[test]
fn a_name_without_a_run_is_rejected_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsFolder::new(folder.path().to_owned());
    for (name, expected) in
        [("web", "no run `web`"), ("..", "may contain only"), ("/tmp", "is not a run")]
    {
        let error = format!("{:#}", results.find(name).unwrap_err());
        assert!(error.contains(expected), "{error}");
    }
    let started = results.create_run_folder("web").unwrap();
    let mut other = run(started.id());
    other.format_version = FORMAT_VERSION + 1;
    started.finish(&other).unwrap();
    let error = format!("{:#}", started.load().unwrap_err());
    assert!(error.contains("format 2, but this program reads 1"), "{error}");
}
