use super::requests::ENDED_REQUESTS_MAX;
use super::*;

#[test]
fn the_oldest_request_is_first_and_other_files_are_none() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(next(folder.path()).unwrap(), None);
    for name in ["20260102.json", "20260101.json", "20260101.done", "x.part"] {
        fs::write(folder.path().join(name), "{}").unwrap();
    }
    assert_eq!(next(folder.path()).unwrap().unwrap().file_name().unwrap(), "20260101.json");
}

#[test]
fn invalid_requests_are_not_executed() {
    let folder = tempfile::tempdir().unwrap();
    let flags =
        WorkFlags { results: ResultsFlags::of(folder.path()), work_folder: "/var/tmp".into() };
    let path = folder.path().join("1.json");
    for (text, expected) in [
        ("{\"plan\": \"../x\", \"scale\": \"quick\"}", "plan"),
        ("{\"plan\": \"/tmp/plan.toml\", \"scale\": \"quick\"}", "plan"),
        ("{\"plan\": \"webb\", \"scale\": \"quick\"}", "no plan `webb`"),
        ("{\"plan\": \"vmq-teaming\", \"scale\": \"--help\"}", "no scale"),
        ("{\"plan\": \"vmq-teaming\", \"scale\": \"quick\", \"more\": 1}", "more"),
        ("[", "EOF"),
    ] {
        fs::write(&path, text).unwrap();
        let error = format!("{:#}", flags.read(&path).unwrap_err());
        assert!(error.contains(expected), "{text}: {error}");
    }
    fs::write(&path, vec![b' '; 5000]).unwrap();
    assert!(flags.read(&path).unwrap_err().to_string().contains("5000 bytes"));
}

#[test]
fn withdrawn_requests_are_not_started_and_old_results_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let flags =
        WorkFlags { results: ResultsFlags::of(folder.path()), work_folder: "/var/tmp".into() };
    let requests = folder.path().to_owned();
    let stop = StopSignal::new().unwrap();
    let worker = RequestLoop {
        flags: &flags,
        requests: requests.clone(),
        stop,
        heartbeat_at: None,
        plans_listed_at: None,
    };
    for name in ["1.json", "1.stop", "2.json", "2.stop", "3.json", "4.stop"] {
        fs::write(requests.join(name), "{}").unwrap();
    }
    worker.withdraw_all(Some(&requests.join("2.json"))).unwrap();
    let names = |extension: &str| -> Vec<String> {
        let paths = files_with_extension(&requests, extension).unwrap();
        paths.iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!((names("json"), names("stop")), (vec!["2".into(), "3".into()], vec!["2".into()]));
    let result: RequestResult =
        serde_json::from_slice(&fs::read(requests.join("1.done")).unwrap()).unwrap();
    assert!(result.error.unwrap().contains("withdrawn"));
    for number in 10..10 + ENDED_REQUESTS_MAX {
        fs::write(requests.join(format!("{number}.done")), "{}").unwrap();
    }
    remove_old_results(&requests).unwrap();
    assert_eq!((names("done").len(), names("done")[0].as_str()), (ENDED_REQUESTS_MAX, "10"));
}

#[test]
fn a_folder_has_at_most_one_worker() {
    let folder = tempfile::tempdir().unwrap();
    let lock_file = try_lock(folder.path()).unwrap();
    assert!(lock_file.is_some());
    assert!(try_lock(folder.path()).unwrap().is_none());
    drop(lock_file);
    assert!(try_lock(folder.path()).unwrap().is_some());
}
