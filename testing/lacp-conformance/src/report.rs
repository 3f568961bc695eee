//! Results of a run and their output.

use std::io::{self, Write};

use serde::Serialize;

/// Result of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Pass {
        observed: String,
    },
    Fail {
        expected: String,
        observed: String,
    },
    NotApplicable {
        reason: String,
    },
    /// The suite failed to execute the case.
    Broken {
        reason: String,
    },
}

/// A case with its result.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Clause of IEEE 802.1AX-2014 unless another standard is named.
    pub(crate) clause: &'static str,
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

/// Results of the whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Name of the device given by the user.
    pub(crate) device: String,
    pub(crate) interfaces: Vec<String>,
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) not_applicable: usize,
    pub(crate) broken: usize,
    pub(crate) cases: Vec<Finding>,
}

impl Report {
    /// Creates the report of these results.
    pub(crate) fn new(device: String, interfaces: Vec<String>, cases: Vec<Finding>) -> Self {
        let count = |is_outcome: fn(&Outcome) -> bool| {
            cases.iter().filter(|finding| is_outcome(&finding.outcome)).count()
        };
        Self {
            passed: count(|outcome| matches!(outcome, Outcome::Pass { .. })),
            failed: count(|outcome| matches!(outcome, Outcome::Fail { .. })),
            not_applicable: count(|outcome| matches!(outcome, Outcome::NotApplicable { .. })),
            broken: count(|outcome| matches!(outcome, Outcome::Broken { .. })),
            device,
            interfaces,
            cases,
        }
    }

    /// Returns the exit code: 0 if no case failed, 1 if a case failed, 2 if the suite failed to
    /// execute a case.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self { broken: 1.., .. } => 2,
            Self { failed: 1.., .. } => 1,
            _ => 0,
        }
    }

    /// Writes the summary line.
    ///
    /// # Errors
    /// Writing fails.
    pub(crate) fn write_totals(&self, output: &mut impl Write) -> io::Result<()> {
        let Self { device, passed, failed, not_applicable, broken, .. } = self;
        write!(
            output,
            "{device}: {passed} passed, {failed} failed, {not_applicable} not applicable"
        )?;
        if *broken > 0 {
            write!(output, ", {broken} could not be run")?;
        }
        writeln!(output)
    }
}

impl Finding {
    /// Writes the result of the case as text.
    ///
    /// # Errors
    /// Writing fails.
    pub(crate) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let Self { id, title, clause, seconds, outcome } = self;
        let line =
            |label: &str, detail: &str| format!("{label:<5} {id:<32} {seconds:>6.2} s  {detail}");
        match outcome {
            Outcome::Pass { observed } => writeln!(output, "{}", line("pass", observed)),
            Outcome::NotApplicable { reason } => writeln!(output, "{}", line("n/a", reason)),
            Outcome::Broken { reason } => writeln!(output, "{}", line("ERROR", reason)),
            Outcome::Fail { expected, observed } => {
                writeln!(output, "{}", line("FAIL", title))?;
                writeln!(output, "      clause   {clause}")?;
                writeln!(output, "      expected {expected}")?;
                writeln!(output, "      observed {observed}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(outcome: Outcome) -> Finding {
        Finding { id: "a.b", title: "it is so", clause: "6.4.1", seconds: 1.5, outcome }
    }

    fn report(outcomes: Vec<Outcome>) -> Report {
        let cases = outcomes.into_iter().map(finding).collect();
        Report::new("device".to_owned(), vec!["eth0".to_owned()], cases)
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_verdict() {
        let pass = || Outcome::Pass { observed: String::new() };
        let fail = || Outcome::Fail { expected: "x".to_owned(), observed: "y".to_owned() };
        let skip = || Outcome::NotApplicable { reason: String::new() };
        let broken = || Outcome::Broken { reason: String::new() };
        assert_eq!(report(vec![pass(), skip()]).exit_code(), 0);
        assert_eq!(report(vec![pass(), fail()]).exit_code(), 1);
        assert_eq!(report(vec![broken(), fail(), pass()]).exit_code(), 2);
    }

    #[test]
    fn a_failure_is_reported_with_its_clause_in_both_formats() {
        let fail = finding(Outcome::Fail { expected: "silence".into(), observed: "noise".into() });
        let mut text = Vec::new();
        fail.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for part in ["FAIL", "a.b", "it is so", "6.4.1", "silence", "noise"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json = serde_json::to_value(&fail).unwrap();
        assert_eq!(json["result"], "fail");
        assert_eq!(json["clause"], "6.4.1");
        assert_eq!(json["observed"], "noise");
    }
}
