use anyhow::ensure;
use suimon_lab_experiments::Requirement;
use suimon_lab_run::{
    FORMAT_VERSION, LocalizedText, MachineInfo, Measure, MeasureDirection, RunOrigin,
};

use super::*;
use crate::results::ResultsFolder;

/// Experiment in which case `a` varies less with each repetition, case `b` does not vary, and case
/// `c` fails.
struct Fake {
    cases: Vec<&'static str>,
    order: std::rc::Rc<std::cell::RefCell<Vec<String>>>,
}

impl Experiment for Fake {
    fn requirements(&self) -> Vec<Requirement> {
        Vec::new()
    }

    fn setup(&self) -> Vec<LocalizedText> {
        Vec::new()
    }

    fn cases(&self) -> Vec<Case> {
        self.cases.iter().map(|id| Case::new(*id, LocalizedText::untranslated(*id), 1.0)).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new("x", LocalizedText::untranslated("x"), "", MeasureDirection::Higher)
                .with_repetition_count_determined(),
        ]
    }

    fn run(&mut self, case: &Case, _: &Environment<'_>) -> Result<Repetition> {
        self.order.borrow_mut().push(case.id.clone());
        ensure!(case.id != "c", "no such luck");
        let mut part = Repetition::default();
        let count = self.order.borrow().iter().filter(|case_id| **case_id == case.id).count();
        let scatter = if case.id == "a" && count < 3 { 10.0 * count as f64 } else { 0.0 };
        part.set_value("x", 100.0 + scatter);
        Ok(part)
    }
}

fn measure(
    cases: &[&'static str],
    repeat: RepetitionPolicy,
    before: Vec<Repetition>,
) -> (Run, Vec<String>, Result<()>) {
    let results = tempfile::tempdir().unwrap();
    let folder = ResultsFolder::new(results.path().to_owned()).create_run_folder("fake").unwrap();
    let order = std::rc::Rc::default();
    let experiment = Fake { cases: cases.to_vec(), order: std::rc::Rc::clone(&order) };
    let mut run = Run {
        format_version: FORMAT_VERSION,
        id: folder.id(),
        plan_text: String::new(),
        origin: RunOrigin::Real,
        scale: "auto".to_owned(),
        started_at: String::new(),
        duration_s: 0.0,
        profiles: false,
        command: String::new(),
        machine: MachineInfo::default(),
        setup: Vec::new(),
        cases: experiment.cases(),
        measures: experiment.measures(),
        repetitions: before,
        skipped_work: Vec::new(),
        aborted_reason: None,
        simulated_figures: Vec::new(),
    };
    let stop = StopSignal::new().unwrap();
    let mut runner = Runner {
        experiment: Box::new(experiment),
        repetition_policy: repeat,
        folder: &folder,
        work_folder: results.path(),
        stop: &stop,
    };
    let result = runner.run(&mut run);
    let order = order.borrow().clone();
    (run, order, result)
}

#[test]
fn cases_alternate_until_deciding_measures_are_precise() {
    let repeat = RepetitionPolicy { min: 2, max: 50, precision_percent: 5.0 };
    let (run, order, result) = measure(&["a", "b"], repeat, Vec::new());
    result.unwrap();
    assert_eq!(order.get(..4).unwrap(), ["a", "b", "b", "a"]);
    // The values are 110, 120 and then 100 repeatedly: half the width of the confidence interval
    // falls below 5 % of the mean after some repetitions.
    let values = run.values("a", "x");
    assert!(values.len() > 4 && values.len() < 20, "{values:?}");
    assert!(
        Statistics::from_samples(&values).unwrap().relative_interval_half_width().unwrap() <= 0.05
    );
    assert_eq!(run.values("b", "x").len(), values.len());
}

#[test]
fn measured_repetitions_are_not_measured_again() {
    let before = vec![Repetition {
        case_id: "a".to_owned(),
        values: [("x".to_owned(), 1.0)].into(),
        ..Repetition::default()
    }];
    let repeat = RepetitionPolicy { min: 1, max: 1, precision_percent: 5.0 };
    let (run, order, result) = measure(&["a", "b"], repeat, before);
    result.unwrap();
    assert_eq!(order, ["b"]);
    assert_eq!(run.repetitions.len(), 2);
}

#[test]
fn a_case_that_fails_repeatedly_is_abandoned_and_the_others_continue() {
    let repeat = RepetitionPolicy { min: 4, max: 4, precision_percent: 5.0 };
    let (run, order, result) = measure(&["c", "b"], repeat, Vec::new());
    result.unwrap();
    assert_eq!(order.iter().filter(|case_id| *case_id == "c").count(), FAILURES_MOST);
    assert_eq!(run.values("b", "x").len(), 4);
    let failed = run.repetitions.iter().find(|part| part.case_id == "c").unwrap();
    assert!(failed.failure.as_deref().unwrap().contains("no such luck"));
    let (_, _, result) = measure(&["c"], repeat, Vec::new());
    assert!(
        format!("{:#}", result.unwrap_err()).contains("no measurement completed: no such luck")
    );
}
