use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use suimon_contract::{LabRequestState, LabRunRequest, LabRunState, LabScale};

use super::*;

const NOW: u64 = 1_800_000_000_000;
const RUN: &str = "vmq-teaming-20260102T030405";

/// Folder of results and a lab that uses it.
struct Place {
    folder: tempfile::TempDir,
    lab: Lab,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::new(Some(&LabConfig { results: folder.path().to_owned() }));
        Self { folder, lab }
    }

    fn write(&self, name: &str, value: &Value) {
        self.write_text(name, &value.to_string());
    }

    fn write_text(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn with_worker(&self) {
        let plan = |id: &str, missing: Value| {
            json!({ "id": id, "title": { "en": "T", "ja": "題" }, "question": { "en": "Q", "ja": "問" },
                "document": "D", "simulation": null, "scales": [
                    { "scale": "auto", "seconds": 60.0, "missing": [] },
                    { "scale": "quick", "seconds": 6.0, "missing": missing },
                ] })
        };
        let lacking = json!([{ "en": "fio is not there; `suimon lab setup`", "ja": "fio" }]);
        self.write(
            "plans.json",
            &json!([plan("vmq-teaming", json!([])), plan("disk-io", lacking)]),
        );
        self.write("worker.json", &json!({ "pid": 7, "at_ms": NOW - 3000 }));
        fs::create_dir_all(self.folder.path().join("requests")).unwrap();
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn head() -> Value {
    json!({ "origin": { "kind": "real" }, "scale": "quick", "began": "2026-01-02T03:04:05Z", "plan": "…" })
}

fn report() -> Value {
    json!({ "run": RUN, "plan": "vmq-teaming", "scale": "quick", "began": "2026-01-02T03:04:05Z",
        "origin": { "kind": "real" }, "verdict": { "en": "It spreads.", "ja": "分散します。" },
        "figures": [{ "id": "packed", "of": { "en": "a", "ja": "あ" }, "published": { "en": "1", "ja": "1" },
            "measured": { "samples": 2, "mean": 1.5, "median": 1.5, "least": 1.0, "most": 2.0,
                "interval": [0.5, 2.5] },
            "unit": "", "digits": 1, "simulated": null, "bar": false, "agreement": "not-measured" }],
        "simulated": [], "cut_short": null })
}

fn run_request(plan: &str) -> LabRunRequest {
    LabRunRequest { plan: plan.to_owned(), scale: LabScale::Quick, profile: false }
}

#[test]
fn without_a_worker_the_remedy_is_reported() {
    let fixture = Place::new();
    for with_worker in [false, true] {
        if with_worker {
            fixture.with_worker();
            fixture.write("worker.json", &json!({ "pid": 7, "at_ms": NOW - 11_000 }));
        }
        let status = fixture.lab.status(NOW).unwrap();
        assert_eq!(status.worker, None);
        let remedy = status.remedy.unwrap();
        assert!(remedy.contains("suimon lab work") && remedy.contains("--results"), "{remedy}");
        assert!(remedy.contains("SUIMON_LAB_RESULTS="), "the unit has it elsewhere: {remedy}");
        let error = fixture.lab.request_run(NOW, &run_request("vmq-teaming")).unwrap_err();
        assert!(error.message.contains("systemctl start suimon-lab"), "{error}");
    }
    let absent_lab = Lab::new(Some(&LabConfig { results: "/nowhere/at/all".into() }));
    assert_eq!(absent_lab.runs().unwrap(), []);
    assert_eq!(absent_lab.status(NOW).unwrap().plans, []);
    assert!(!Lab::new(None).remedy().contains("--results"), "the usual folder needs no word");
}

#[test]
fn requests_are_written_for_the_worker_and_its_results_are_reported() {
    let fixture = Place::new();
    fixture.with_worker();
    let first = fixture.lab.request_run(NOW, &run_request("vmq-teaming")).unwrap();
    let second = fixture.lab.request_run(NOW, &run_request("vmq-teaming")).unwrap();
    assert_eq!((first.id.as_str(), second.id.as_str()), ("1800000000000", "1800000000001"));
    let file = fixture.folder.path().join("requests/1800000000000.json");
    let written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let expected = json!({ "plan": "vmq-teaming", "scale": "quick", "profile": false });
    assert_eq!(written, expected);
    let states = |fixture: &Place| -> Vec<LabRequestState> {
        fixture.lab.status(NOW).unwrap().requests.iter().map(|request| request.state).collect()
    };
    assert_eq!(states(&fixture), [LabRequestState::Queued, LabRequestState::Queued]);
    fixture
        .write("worker.json", &json!({ "pid": 7, "at_ms": NOW, "request": first.id, "run": RUN }));
    let status = fixture.lab.status(NOW).unwrap();
    assert_eq!(status.requests[0].state, LabRequestState::InProgress);
    assert_eq!(status.requests[0].run_id.as_deref(), Some(RUN));
    assert_eq!(fixture.lab.withdraw(NOW, &first.id).unwrap().state, LabRequestState::Stopping);
    assert!(fixture.names("requests").contains(&"1800000000000.stop".to_owned()));
    assert_eq!(states(&fixture)[0], LabRequestState::Stopping);
    fixture.write("requests/1800000000000.done", &json!({ "run": RUN, "error": "asked to stop" }));
    fs::remove_file(file).unwrap();
    let withdrawn = fixture.lab.withdraw(NOW, &first.id).unwrap();
    assert_eq!(
        (withdrawn.state, withdrawn.error.as_deref()),
        (LabRequestState::Failed, Some("asked to stop"))
    );
    fixture.write("requests/1800000000001.done", &json!({ "run": RUN }));
    assert_eq!(states(&fixture)[1], LabRequestState::Done);
    let error = fixture.lab.withdraw(NOW, "../plans").unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
}

#[test]
fn concurrent_requests_are_distinct_and_bounded() {
    let fixture = Place::new();
    fixture.with_worker();
    let request_run = || fixture.lab.request_run(NOW, &run_request("vmq-teaming"));
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..24).map(|_| scope.spawn(request_run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let codes: Vec<ErrorCode> =
        results.iter().filter_map(|result| result.as_ref().err()).map(|error| error.code).collect();
    assert_eq!(codes, [ErrorCode::Conflict; 8], "16 may wait");
    let names = fixture.names("requests");
    assert_eq!(names.len(), 16, "{names:?}");
    for name in names {
        let path = fixture.folder.path().join("requests").join(&name);
        let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(written["plan"], "vmq-teaming", "{name}");
    }
}

#[test]
fn queued_requests_are_withdrawn_at_once_without_a_worker() {
    let fixture = Place::new();
    fixture.with_worker();
    let request = fixture.lab.request_run(NOW, &run_request("vmq-teaming")).unwrap();
    let later = NOW + 60_000;
    assert_eq!(fixture.lab.status(later).unwrap().requests[0].state, LabRequestState::Queued);
    assert_eq!(fixture.lab.withdraw(later, &request.id).unwrap().state, LabRequestState::Failed);
    assert_eq!(fixture.names("requests"), [] as [String; 0]);
}

#[test]
fn plans_that_cannot_be_run_are_rejected() {
    let fixture = Place::new();
    fixture.with_worker();
    for (plan, code, text) in [
        ("web", ErrorCode::UnknownReference, "the plans are vmq-teaming, disk-io"),
        ("../../etc/x", ErrorCode::UnknownReference, "no plan"),
        ("disk-io", ErrorCode::Unsupported, "suimon lab setup"),
    ] {
        let error = fixture.lab.request_run(NOW, &run_request(plan)).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(text), "{error}");
    }
    // The requirements of another scale are met.
    let wanted_auto = LabRunRequest { scale: LabScale::Auto, ..run_request("disk-io") };
    fixture.lab.request_run(NOW, &wanted_auto).unwrap();
    for delay_ms in 1..16 {
        fixture.lab.request_run(NOW + delay_ms, &run_request("vmq-teaming")).unwrap();
    }
    let error = fixture.lab.request_run(NOW + 100, &run_request("vmq-teaming")).unwrap_err();
    assert_eq!(error.code, ErrorCode::Conflict);
}

#[test]
fn runs_are_listed_from_the_contents_of_their_files() {
    let fixture = Place::new();
    let (earlier_run, simulated) = ("web-20260101T000000", "web-20260103T000000");
    fixture.write(&format!("{RUN}/head.json"), &head());
    fixture.write(&format!("{RUN}/progress.json"),
        &json!({ "pid": 1, "case": { "en": "c", "ja": "c" }, "repetition": 2, "parts_done": 3, "seconds_left": 40 }));
    fixture.write(&format!("{earlier_run}/head.json"), &head());
    fixture.write(&format!("{earlier_run}/run.json"), &head());
    fixture.write(&format!("{earlier_run}/report.json"), &report());
    fixture.write(&format!("{earlier_run}/report.html"), &json!("page"));
    let origin = json!({ "kind": "simulated", "scenario": "web", "seed": 1, "commit": "" });
    let mut of_model = head();
    of_model["origin"] = origin;
    fixture.write(&format!("{simulated}/run.json"), &of_model);
    fixture.write("requests/1.json", &json!({}));
    fixture.write("web-20260104T000000/other", &json!({}));

    let runs = fixture.lab.runs().unwrap();
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, [simulated, RUN, earlier_run], "the latest first");
    assert_eq!((runs[0].simulated, runs[0].plan.as_str()), (true, "web"));
    assert_eq!((runs[1].state, &runs[1].progress), (LabRunState::Interrupted, &None));
    assert_eq!(runs[2].verdict.as_ref().unwrap().ja, "分散します。");

    // A run whose folder is locked is in progress.
    let run_dir = fs::File::open(fixture.folder.path().join(RUN)).unwrap();
    rustix::fs::flock(&run_dir, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let run = fixture.lab.run_details(RUN).unwrap();
    assert_eq!(run.run.state, LabRunState::InProgress);
    let progress = run.run.progress.unwrap();
    assert_eq!(progress.remaining_s, 40);
    assert!(progress.repetition_started_unix_ms > 1_700_000_000_000, "{progress:?}");
    assert_eq!(fixture.lab.runs().unwrap()[1].state, LabRunState::InProgress);
    drop(run_dir);
    assert_eq!(fixture.lab.runs().unwrap()[1].state, LabRunState::Interrupted);

    let details = fixture.lab.run_details(earlier_run).unwrap();
    assert!(details.has_report && details.run.state == LabRunState::Complete);
    assert_eq!(details.figures[0].measured.as_ref().unwrap().confidence_interval, Some([0.5, 2.5]));
    assert_eq!(fixture.lab.html_report(earlier_run).unwrap(), b"\"page\"");
    assert_eq!(fixture.lab.html_report(RUN).unwrap_err().code, ErrorCode::NotFound);
    // A changed report is detected although the list caches the old one.
    let mut changed = report();
    changed["verdict"]["en"] = "It does not spread at all.".into();
    fixture.write(&format!("{earlier_run}/report.json"), &changed);
    assert_eq!(
        fixture.lab.runs().unwrap()[2].verdict.as_ref().unwrap().en,
        changed["verdict"]["en"]
    );
}

#[test]
fn files_outside_the_folder_are_not_read_and_damaged_files_are_named() {
    let fixture = Place::new();
    fixture.write(&format!("{RUN}/head.json"), &head());
    let path = |name: &str| fixture.folder.path().join(RUN).join(name);
    for id in ["..", "../x", "/etc", "", "a/b", "nothing-20260102T030405", "requests\0"] {
        assert_eq!(fixture.lab.run_details(id).unwrap_err().code, ErrorCode::NotFound, "{id:?}");
        assert_eq!(fixture.lab.html_report(id).unwrap_err().code, ErrorCode::NotFound, "{id:?}");
    }
    symlink("/etc/passwd", path("report.html")).unwrap();
    let error = fixture.lab.html_report(RUN).unwrap_err();
    assert!(error.message.contains("link") && error.file.unwrap().ends_with("report.html"));
    symlink("/etc", fixture.folder.path().join("etc-20260102T030405")).unwrap();
    assert_eq!(
        fixture.lab.run_details("etc-20260102T030405").unwrap_err().code,
        ErrorCode::NotFound
    );
    fs::remove_file(path("report.html")).unwrap();

    // Pipe without a writer.
    let pipe = std::process::Command::new("mkfifo").arg(path("report.html")).status().unwrap();
    assert!(pipe.success());
    assert!(fixture.lab.html_report(RUN).unwrap_err().message.contains("file"));

    for (text, expected) in [("{", "EOF"), ("[]", "damaged"), ("{\"figures\": 1}", "damaged")] {
        fs::write(path("report.json"), text).unwrap();
        let run = fixture.lab.run_details(RUN).unwrap();
        let error = run.run.error.unwrap();
        assert!(error.contains("report.json") && error.contains(expected), "{text}: {error}");
        assert_eq!(fixture.lab.runs().unwrap()[0].error.as_ref(), Some(&error));
    }
    fs::write(path("report.json"), vec![b' '; 5 << 20]).unwrap();
    assert!(fixture.lab.run_details(RUN).unwrap().run.error.unwrap().contains("bytes"));
    fixture.write_text("plans.json", "[{}]");
    let error = fixture.lab.status(NOW).unwrap_err();
    assert!(error.file.unwrap().ends_with("plans.json"));
}

#[test]
fn two_runs_that_came_to_their_end_are_compared() {
    let fixture = Place::new();
    let run = |values: &[f64]| {
        let parts: Vec<Value> = (0..)
            .zip(values)
            .map(|(repetition, value)| {
                json!({ "case": "a", "repetition": repetition, "began_ms": 0, "took_s": 1.0,
                    "load_before": 0.0, "values": { "m": value }, "series": [], "marks": [], "notes": [],
                    "failure": null })
            })
            .collect();
        json!({ "format": 1, "id": "x", "plan": "", "origin": { "kind": "real" }, "scale": "auto",
            "began": "", "took_s": 1.0, "command": "",
            "machine": serde_json::to_value(suimon_lab_run::MachineInfo::default()).unwrap(),
            "setup": [], "cases": [{ "id": "a", "words": { "en": "A", "ja": "A" }, "seconds": 1.0 }],
            "measures": [{ "id": "m", "words": { "en": "M", "ja": "M" }, "unit": "MB/s",
                "better": "higher", "decides": false }],
            "parts": parts, "missing": [], "cut_short": null })
    };
    let (a, b, other) = ("web-20260101T000000", "web-20260102T000000", "web-20260103T000000");
    fixture.write(&format!("{a}/run.json"), &run(&[1.0, 2.0, 3.0, 4.0, 5.0]));
    fixture.write(&format!("{b}/run.json"), &run(&[11.0, 12.0, 13.0, 14.0, 15.0]));
    fixture.write(&format!("{other}/head.json"), &head());
    let compared = fixture.lab.compare(a, b).unwrap();
    assert_eq!(
        (compared.first_run.as_str(), compared.second_run.as_str(), compared.machines_differ),
        (a, b, false)
    );
    let comparison = &compared.measures[0];
    assert_eq!(
        (comparison.finding, comparison.first_run.mean, comparison.second_run.mean),
        (suimon_contract::LabFinding::Better, 3.0, 13.0)
    );
    assert!(comparison.p_value < 0.05);
    let error = fixture.lab.compare(a, other).unwrap_err();
    assert!(error.message.contains("--resume web-20260103T000000"), "{error}");
    assert_eq!(fixture.lab.compare("..", b).unwrap_err().code, ErrorCode::NotFound);
}
