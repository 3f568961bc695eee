use super::advice::{RecommendedSetting, Value};
use super::*;
use crate::report::tests::full_run;

const HOST: &str = "# mine\n[host]\nname = \"h\"\n\n[[team]]\nname = \"a\" # first\nmode = \"static\"\nalgorithm = \"mac-addresses\"\n\n[[team]]\nname = \"b\"\nmode = \"lacp\"\nalgorithm = \"dynamic\"\n[team.vmq]\nmode = \"dynamic\"\n";

fn set(target: &RecommendedSetting) -> (usize, String) {
    let mut file = HostFile::parse(HOST).unwrap();
    let changed = file.set(target);
    (changed, file.text())
}

fn target(
    selector: Option<(&'static str, &str)>,
    key: &'static str,
    value: Value,
) -> RecommendedSetting {
    RecommendedSetting {
        table: "team",
        table_filter: selector.map(|(key, value)| (key, value.to_owned())),
        key,
        value,
    }
}

#[test]
fn only_the_selected_key_is_changed_and_the_remaining_text_is_preserved() {
    let algorithm = Value::Text("hyper-v-port".to_owned());
    let (changed, text) = set(&target(Some(("mode", "static")), "algorithm", algorithm));
    assert_eq!(changed, 1);
    assert_eq!(text, HOST.replacen("mac-addresses", "hyper-v-port", 1));
    let (changed, text) = set(&target(None, "vmq.max_workers", Value::Number(2)));
    assert_eq!(changed, 2);
    let parsed: toml::Table = text.parse().unwrap();
    for team in parsed["team"].as_array().unwrap() {
        assert_eq!(team["vmq"]["max_workers"].as_integer(), Some(2), "{text}");
    }
    assert!(text.starts_with("# mine\n") && text.contains("# first"), "{text}");
    // An equal value is not a change, and a missing table is not created.
    assert_eq!(set(&target(None, "mode", Value::Text("lacp".to_owned()))).0, 1);
    let absent = RecommendedSetting { table: "nic", ..target(None, "x", Value::Number(1)) };
    assert_eq!(set(&absent), (0, HOST.to_owned()));
}

#[test]
fn the_algorithm_that_carries_most_is_advised_for_teams_of_its_mode() {
    let mut run = full_run("vmq-teaming");
    for part in &mut run.repetitions {
        let is_best = part.case_id.ends_with("+ip-addresses");
        part.set_value("processors-1", 1.0);
        part.set_value("carried-4", if is_best { 2e6 } else { 1e6 });
    }
    let advice = rules::recommendations(&run);
    assert_eq!(advice.len(), 3);
    for advice_item in &advice {
        let target = advice_item.target.as_ref().unwrap();
        assert_eq!(target.value, Value::Text("ip-addresses".to_owned()));
    }
    // The spread exceeds the difference.
    let mut wide = run.clone();
    for part in &mut wide.repetitions {
        let is_odd = part.repetition % 2 == 1;
        let throughput = part.values["carried-4"];
        part.set_value("carried-4", if is_odd { throughput * 5.0 } else { throughput });
    }
    assert_eq!(rules::recommendations(&wide), []);
    // Without a difference, nothing is recommended.
    for part in &mut run.repetitions {
        part.set_value("carried-4", 2e6);
    }
    assert_eq!(rules::recommendations(&run), []);
}

/// Returns the recommendations from a run with these values by case and measure.
fn recommend(plan: &str, value: impl Fn(&str, &str) -> f64) -> Vec<Advice> {
    let mut run = full_run(plan);
    let measures: Vec<String> = run.measures.iter().map(|measure| measure.id.clone()).collect();
    for part in &mut run.repetitions {
        let case = part.case_id.clone();
        for measure in &measures {
            part.set_value(measure, value(&case, measure));
        }
    }
    rules::recommendations(&run)
}

fn recommended(advice: &[Advice]) -> Option<(&'static str, &'static str, Value)> {
    let target = advice.first()?.target.as_ref()?;
    Some((target.table, target.key, target.value.clone()))
}

#[test]
fn an_uplinks_driver_is_advised_by_throughput_then_by_cpu_time() {
    let advice_of = |xdp_sent: f64, xdp_cpu: f64| {
        recommend("offload-ftp", |case, measure| match (case, measure) {
            ("xdp+both", "sent") => xdp_sent,
            ("xdp+both", "cpu-byte") => xdp_cpu,
            _ => 1000.0,
        })
    };
    let driver = |name: &str| Some(("uplink", "driver", Value::Text(name.to_owned())));
    assert_eq!(recommended(&advice_of(2000.0, 1500.0)), driver("af_xdp"));
    assert_eq!(recommended(&advice_of(500.0, 100.0)), driver("af_packet"));
    assert_eq!(recommended(&advice_of(990.0, 800.0)), driver("af_xdp"));
    assert_eq!(recommended(&advice_of(1010.0, 1200.0)), driver("af_packet"));
    assert_eq!(advice_of(1010.0, 990.0), []);
}

#[test]
fn the_smallest_sufficient_number_of_workers_is_recommended() {
    let advice_of = |rate_with_two: f64, spread: f64| {
        let mut run = full_run("vmq-max-processors");
        for part in &mut run.repetitions {
            let variation = f64::from(part.repetition) * spread;
            part.set_value("carried-1", 1000.0 + variation);
            part.set_value("carried-2", rate_with_two + variation);
            part.set_value("carried-3", 1000.0 + variation);
        }
        rules::recommendations(&run)
    };
    assert_eq!(
        recommended(&advice_of(1900.0, 5.0)),
        Some(("team", "vmq.max_workers", Value::Number(2)))
    );
    assert_eq!(advice_of(1010.0, 5.0), []);
    assert_eq!(advice_of(1900.0, 900.0), []);
}

#[test]
fn a_power_plan_is_recommended_if_it_improves_results_significantly() {
    let advice_of = |saver: f64, watts: f64, high: f64| {
        recommend("power-plan", |case, measure| match (case, measure) {
            ("power-saver", "tcp-rate") => saver,
            ("power-saver", _) if measure.ends_with("-watts") => watts,
            ("high-performance", _) if measure.ends_with("-rate") => high,
            _ => 1000.0,
        })
    };
    let plan = |name: &str| Some(("power", "plan", Value::Text(name.to_owned())));
    assert_eq!(recommended(&advice_of(980.0, 700.0, 1300.0)), plan("power-saver"));
    assert_eq!(recommended(&advice_of(700.0, 700.0, 1300.0)), plan("high-performance"));
    assert_eq!(advice_of(700.0, 700.0, 1010.0), []);
    // Machine that does not support the settings of power plans.
    assert_eq!(advice_of(1000.0, 1000.0, 1000.0), []);
}

#[test]
fn nothing_is_recommended_from_differences_within_the_spread() {
    let mut run = full_run("tiles");
    for part in &mut run.repetitions {
        let score = if part.case_id == "tiles.2" { 3.0 } else { 2.0 };
        part.set_value("score", score + f64::from(part.repetition) - 1.0);
    }
    assert_eq!(rules::recommendations(&run), []);
    let mut run = full_run("offload-ftp");
    run.repetitions.retain(|part| part.repetition == 0);
    for part in &mut run.repetitions {
        part.set_value("sent", if part.case_id == "xdp+both" { 2000.0 } else { 1000.0 });
    }
    assert_eq!(rules::recommendations(&run), [], "each was measured once");
}

#[test]
fn costs_of_formats_and_tile_counts_are_reported_without_changes() {
    let advice =
        recommend("disk-io", |case, _| if case.contains("dynamic") { 500.0 } else { 1000.0 });
    let [advice] = advice.as_slice() else { panic!("{advice:?}") };
    assert_eq!(advice.target, None);
    let text = &advice.reason.en;
    assert!(text.contains("vhdx-dynamic 50 %") && text.contains("vhdx-fixed 100 %"), "{text}");
    let advice = recommend("tiles", |case, _| if case == "tiles.2" { 3.0 } else { 2.0 });
    let [advice] = advice.as_slice() else { panic!("{advice:?}") };
    assert!(advice.reason.en.contains("2 tiles"), "{advice:?}");
}
