use clap::Parser;
use serde_json::Value;

use super::*;

#[derive(Parser)]
struct Vmq {
    #[command(subcommand)]
    verb: VmqVerb,
}

fn patch(args: &[&str]) -> Result<Value, Failure> {
    let parsed = Vmq::parse_from(["x", "set", "both"].iter().chain(args));
    let VmqVerb::Set(flags) = parsed.verb else { panic!("another verb") };
    settings::merge_patch(&flags.settings).map(Value::Object)
}

fn usage_error(args: &[&str]) -> String {
    match Vmq::try_parse_from(["x", "set", "both"].iter().chain(args)) {
        Ok(_) => panic!("accepted: {args:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn set_sends_only_the_keys_that_were_named_each_as_its_type() {
    let assignments = ["enabled=off", "mode=static", "base_worker=2", "numa_node=default"];
    assert_eq!(
        patch(&assignments).unwrap(),
        json!({"enabled": false, "mode": "static", "base_worker": 2, "numa_node": null})
    );
    let repeated = patch(&["mode=static", "mode=dynamic"]).unwrap_err();
    assert_eq!(
        (repeated.exit_code(), repeated.to_string()),
        (2, "`mode` is given twice; give it once".to_owned())
    );
}

#[test]
fn invalid_names_are_reported_with_the_valid_ones() {
    let keys = "the keys are enabled, mode, base_worker, max_workers, \
                max_worker_number, numa_node";
    let message = usage_error(&["processors=2"]);
    assert!(message.contains(&format!("no key `processors` exists; {keys}")), "{message}");
    let message = usage_error(&["enabled"]);
    assert!(message.contains(&format!("must be KEY=VALUE or KEY=default; {keys}")), "{message}");
    let message = usage_error(&["enabled=yes"]);
    assert!(message.contains("`enabled` must be on, off or default, not `yes`"), "{message}");
    let message = usage_error(&["max_workers=0"]);
    let expected = "`max_workers` must be a whole number from 1 to 64 or default, not `0`";
    assert!(message.contains(expected), "{message}");
    let message = usage_error(&["mode=adaptive"]);
    assert!(message.contains("or default, not `adaptive`"), "{message}");
    assert!(usage_error(&[]).contains("KEY=VALUE|default"));
}
