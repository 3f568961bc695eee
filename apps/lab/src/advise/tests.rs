use super::*;
use crate::report::tests::full_run;

const HOST: &str = "# mine\n[host]\nname = \"h\"\n\n[[team]]\nname = \"a\" # first\nmode = \"static\"\nalgorithm = \"mac-addresses\"\n\n[[team]]\nname = \"b\"\nmode = \"lacp\"\nalgorithm = \"dynamic\"\n[team.vmq]\nmode = \"dynamic\"\n";

fn set(target: &Target) -> (usize, String) {
    let mut file = HostFile::parse(HOST).unwrap();
    let changed = file.set(target);
    (changed, file.text())
}

fn target(only: Option<(&'static str, &str)>, key: &'static str, value: Value) -> Target {
    Target { table: "team", only: only.map(|(key, value)| (key, value.to_owned())), key, value }
}

#[test]
fn only_what_is_meant_is_changed_and_the_rest_stays_as_it_was_written() {
    let wanted = Value::Text("hyper-v-port".to_owned());
    let (changed, text) = set(&target(Some(("mode", "static")), "algorithm", wanted));
    assert_eq!(changed, 1);
    assert_eq!(text, HOST.replacen("mac-addresses", "hyper-v-port", 1));
    let (changed, text) = set(&target(None, "vmq.max_processors", Value::Number(2)));
    assert_eq!(changed, 2);
    let back: toml::Table = text.parse().unwrap();
    for team in back["team"].as_array().unwrap() {
        assert_eq!(team["vmq"]["max_processors"].as_integer(), Some(2), "{text}");
    }
    assert!(text.starts_with("# mine\n") && text.contains("# first"), "{text}");
    // What is so already is no change, and what is not there is not made.
    assert_eq!(set(&target(None, "mode", Value::Text("lacp".to_owned()))).0, 1);
    let nowhere = Target { table: "nic", ..target(None, "x", Value::Number(1)) };
    assert_eq!(set(&nowhere), (0, HOST.to_owned()));
}

#[test]
fn the_algorithm_that_carries_most_is_advised_for_teams_of_its_mode() {
    let mut run = full_run("vmq-teaming");
    for part in &mut run.parts {
        let is_best = part.case.ends_with("+ip-addresses");
        part.value("processors-1", 1.0);
        part.value("carried-4", if is_best { 2e6 } else { 1e6 });
    }
    let advice = rules::of_run(&run);
    assert_eq!(advice.len(), 3);
    for of in &advice {
        let target = of.target.as_ref().unwrap();
        assert_eq!(target.value, Value::Text("ip-addresses".to_owned()));
    }
    // All alike: nothing follows.
    for part in &mut run.parts {
        part.value("carried-4", 2e6);
    }
    assert_eq!(rules::of_run(&run), []);
}
