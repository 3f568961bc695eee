//! Report of a failed run.

use std::path::Path;

use suimon_sim_kernel::ScenarioResult;

/// Commit from which the program was built.
pub(crate) const COMMIT: &str = env!("SUIMON_COMMIT");

/// Returns the report of a failed run: failed checks, seed, commit, and the command that reproduces
/// it.
pub(crate) fn failure_report(
    path: &Path,
    seed: u64,
    is_swarm: bool,
    outcome: &ScenarioResult,
) -> String {
    let mut text = String::new();
    for complaint in &outcome.violations {
        let seconds = complaint.at_ns as f64 / 1e9;
        text.push_str(&format!(
            "{}: at {seconds:.3} s: {}\n",
            complaint.checker, complaint.description
        ));
    }
    let remaining = outcome.violation_count - outcome.violations.len() as u64;
    if remaining > 0 {
        text.push_str(&format!("and {remaining} more\n"));
    }
    let swarm = if is_swarm { " --swarm" } else { "" };
    text.push_str(&format!(
        "seed {seed}, commit {COMMIT}; repeat with: sim run {} --seed {seed}{swarm}\n",
        path.display()
    ));
    text
}

#[cfg(test)]
mod tests {
    use suimon_sim_kernel::Violation;

    use super::*;

    #[test]
    fn a_failure_names_the_checker_and_the_command_that_repeats_the_run() {
        let complaint =
            Violation { at_ns: 2_500_000_000, checker: "maximum", description: "x".to_owned() };
        let outcome = ScenarioResult {
            violations: vec![complaint],
            violation_count: 3,
            ..ScenarioResult::default()
        };
        let text = failure_report(Path::new("qos-host.toml"), 1, false, &outcome);
        assert!(text.starts_with("maximum: at 2.500 s: x\nand 2 more\nseed 1, commit "), "{text}");
        assert!(text.ends_with("; repeat with: sim run qos-host.toml --seed 1\n"), "{text}");
        let text = failure_report(Path::new("qos-host.toml"), 7, true, &outcome);
        assert!(text.ends_with(" --seed 7 --swarm\n"), "{text}");
    }
}
