//! Raw samples as CSV (RFC 4180).

use std::fmt::Write as _;

use suimon_lab_run::Run;

/// Returns one line per value: case, repetition, measure, unit, value.
pub(crate) fn values(run: &Run) -> String {
    let mut text = String::from("case,repetition,began_ms,measure,unit,value\r\n");
    for part in &run.repetitions {
        for (measure, value) in &part.values {
            let unit = run.measure(measure).map_or("", |measure| measure.unit.as_str());
            let _ = write!(
                text,
                "{},{},{},{},{},{value}\r\n",
                field(&part.case_id),
                part.repetition,
                part.started_unix_ms,
                field(measure),
                field(unit)
            );
        }
    }
    text
}

/// Returns one line per sample of a series, with a header.
pub(crate) fn samples(run: &Run) -> String {
    let mut text = String::from("case,repetition,group,name,unit,at_s,value\r\n");
    for part in &run.repetitions {
        for series in &part.series {
            for (index, value) in &series.points {
                let _ = write!(
                    text,
                    "{},{},{},{},{},{index},{value}\r\n",
                    field(&part.case_id),
                    part.repetition,
                    field(&series.group),
                    field(&series.name),
                    field(&series.unit)
                );
            }
        }
    }
    text
}

/// Returns one line per module of each profile; `None` without profiles.
pub(crate) fn profile(run: &Run) -> Option<String> {
    let mut text = String::from("case,repetition,module,measured_s,cpu_s\r\n");
    let before = text.len();
    for part in &run.repetitions {
        let Some(profile) = &part.profile else { continue };
        for module in &profile.modules {
            let _ = write!(
                text,
                "{},{},{},{},{}\r\n",
                field(&part.case_id),
                part.repetition,
                field(&module.name),
                profile.duration_s,
                module.cpu_seconds
            );
        }
    }
    (text.len() > before).then_some(text)
}

/// Returns a field in the notation of CSV, quoted if it contains a comma, quote or line break.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use suimon_lab_run::{Profile, ProfiledModule, Repetition, Series};

    use super::*;

    #[test]
    fn every_value_and_every_sample_has_a_line() {
        let mut run = crate::results::tests::run("x".to_owned());
        let mut part =
            Repetition { case_id: "a".to_owned(), repetition: 2, ..Repetition::default() };
        part.set_value("rate", 1.5);
        part.series.push(Series {
            group: "disk".to_owned(),
            name: "VM \"1\", left".to_owned(),
            unit: "MB/s".to_owned(),
            points: vec![(0.5, 8.0), (1.5, 9.0)],
        });
        run.repetitions.push(part);
        assert_eq!(profile(&run), None);
        let module = ProfiledModule { name: "kernel: TCP".to_owned(), cpu_seconds: 0.5 };
        run.repetitions.push(Repetition {
            case_id: "a".to_owned(),
            profile: Some(Profile { duration_s: 2.0, modules: vec![module] }),
            ..Repetition::default()
        });
        assert_eq!(profile(&run).unwrap().lines().nth(1), Some("a,0,kernel: TCP,2,0.5"));
        assert_eq!(values(&run).lines().nth(1), Some("a,2,0,rate,,1.5"));
        assert_eq!(samples(&run).lines().count(), 3);
        assert_eq!(
            samples(&run).lines().nth(2),
            Some("a,2,disk,\"VM \"\"1\"\", left\",MB/s,1.5,9")
        );
    }
}
