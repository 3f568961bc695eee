use suimon_lab_run::{Mark, Repetition, Run, Series};

use super::*;
use crate::plan::{Plan, SHIPPED_PLANS, Scale};

/// Returns a run of a shipped plan with values for all measures.
pub(crate) fn full_run(id: &str) -> Run {
    let plan = Plan::find(id).unwrap();
    let experiment = plan.experiment(Scale::Auto).unwrap();
    let mut run = crate::results::tests::run(format!("{id}-x"));
    run.plan_text.clone_from(&plan.text);
    (run.cases, run.measures) = (experiment.cases(), experiment.measures());
    run.setup = experiment.setup();
    let groups: Vec<String> =
        plan.header.charts.iter().filter_map(|chart| chart.series_group.clone()).collect();
    for repetition in 0..3 {
        for (case_index, case) in run.cases.iter().enumerate() {
            let mut part =
                Repetition { case_id: case.id.clone(), repetition, ..Repetition::default() };
            for (measure_index, measure) in run.measures.iter().enumerate() {
                part.set_value(
                    &measure.id,
                    (case_index * 7 + measure_index * 3 + 1) as f64 + f64::from(repetition) * 0.1,
                );
            }
            for group in &groups {
                let points =
                    (0..20).map(|second| (f64::from(second), f64::from(second % 5))).collect();
                let name = "<one>".to_owned();
                part.series.push(Series {
                    group: group.clone(),
                    name,
                    unit: "x".to_owned(),
                    points,
                });
            }
            part.marks
                .push(Mark { at_s: 5.0, description: LocalizedText::new("a step", "段階") });
            run.repetitions.push(part);
        }
    }
    run
}

#[test]
fn every_shipped_plan_has_a_report_with_all_its_charts_and_both_languages() {
    for (id, _) in SHIPPED_PLANS {
        let read = EvaluatedRun::evaluate(full_run(id)).unwrap();
        let page = render_page(&read, Language::Ja);
        let charts = page.matches("<section class=chart>").count();
        assert_eq!(charts, read.plan.header.charts.len(), "{id}: a chart shows nothing");
        assert!(charts > 0, "{id} has no chart");
        let LocalizedText { en, ja } = &read.plan.header.question;
        assert!(
            page.contains(&page::escape_html(en)) && page.contains(&page::escape_html(ja)),
            "{id}"
        );
        assert!(!page.contains("NaN") && !page.contains("inf"), "{id}");
        // The page loads no external resources, and names are escaped.
        for external in ["http://", "https://", "src=", "@import", "url(", "<one>"] {
            assert!(!page.contains(external), "{id}: {external}");
        }
        for judged in &read.evaluated_figures {
            assert!(
                judged.measured.is_some(),
                "{id}: figure {} names a case that is not there",
                judged.id
            );
        }
        let answer = &read.verdict.en;
        assert!(!answer.contains('{') && !answer.contains("not measured"), "{id}: {answer}");
    }
}

#[test]
fn a_run_without_measurements_has_a_report_that_states_this() {
    let mut run = full_run("vmq-teaming");
    run.repetitions.truncate(1);
    run.repetitions[0] = Repetition {
        case_id: run.cases[0].id.clone(),
        failure: Some("iperf3 <died>".to_owned()),
        ..Repetition::default()
    };
    run.aborted_reason = Some("asked to stop".to_owned());
    let page = render_page(&EvaluatedRun::evaluate(run).unwrap(), Language::En);
    assert!(page.contains("iperf3 &lt;died&gt;"));
    assert!(page.contains("The run is incomplete: asked to stop."));
    assert!(page.contains("4 were not measured"));
}
