use super::*;
use crate::plan::find_shipped_plan;
use crate::results::tests::run;

/// Returns the plan `vmq-teaming`, and a run of it. The entries are case, measure, and value in
/// each repetition.
fn with(values: &[(&str, &str, &[f64])]) -> (Plan, Run) {
    let plan = Plan::parse(find_shipped_plan("vmq-teaming").unwrap()).unwrap();
    let mut run = run("x".to_owned());
    for (case, measure, values) in values {
        for (repetition, value) in (0..).zip(*values) {
            let mut part = suimon_lab_run::Repetition {
                case_id: (*case).to_owned(),
                repetition,
                ..Default::default()
            };
            part.set_value(measure, *value);
            run.repetitions.push(part);
        }
    }
    (plan, run)
}

#[test]
fn a_figure_agrees_by_its_whole_interval() {
    let case = "switch-independent+hyper-v-port";
    for (values, expected, text) in [
        (&[1.0][..], Agreement::Agrees, "1"),
        (&[1.0, 1.0], Agreement::Agrees, "1"),
        (&[4.0, 4.0, 4.0], Agreement::Differs, "4"),
        (&[1.0, 1.0, 2.0], Agreement::Inconclusive, "1.33 ± 1.43"),
    ] {
        let (plan, run) = with(&[(case, "processors-1", values)]);
        let judged = evaluate(&plan, &run);
        assert_eq!(judged[0].agreement, expected, "{values:?}");
        assert_eq!(judged[0].measured_text().unwrap(), text);
        assert_eq!(judged[1].agreement, Agreement::NotMeasured);
    }
}

#[test]
fn a_ratio_is_taken_repetition_by_repetition() {
    let (mut plan, run) = with(&[
        ("a", "carried-1", &[110.0, 220.0, 330.0]),
        ("b", "carried-1", &[100.0, 200.0, 300.0]),
    ]);
    let text = r#"
        id = "more"
        of = { en = "", ja = "" }
        published = { en = "", ja = "" }
        measured = "a/carried-1"
        over = "b/carried-1"
        times = 100.0
        minus = 100.0
        unit = "% more"
        expects = { at_least = 9.0, at_most = 11.0 }
    "#;
    plan.header.figures = vec![toml::from_str(text).unwrap()];
    let judged = evaluate(&plan, &run);
    // The values vary by a factor of three, but their ratio is constant.
    assert_eq!(judged[0].measured_text().unwrap(), "10 % more");
    assert_eq!(judged[0].agreement, Agreement::Agrees);
}

#[test]
fn the_verdict_states_measured_values_and_missing_ones() {
    let (plan, run) = with(&[("switch-independent+hyper-v-port", "processors-1", &[1.0])]);
    let verdict = verdict(&plan, &run, &evaluate(&plan, &run));
    assert!(verdict.en.contains("TransportPorts: 1 and (not measured)"), "{}", verdict.en);
    assert!(verdict.en.contains("(not measured) with 420 sessions"), "{}", verdict.en);
    assert!(
        verdict.en.contains("1 of 4 figures are as expected, 3 were not measured"),
        "{}",
        verdict.en
    );
    assert!(
        verdict.ja.contains("4 個の数値のうち 1 個が期待どおり、3 個が未測定"),
        "{}",
        verdict.ja
    );
}
