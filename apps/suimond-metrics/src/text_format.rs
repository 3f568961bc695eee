//! Conversion from OpenMetrics, which the library writes, to the Prometheus text format, which all
//! collectors support.
//!
//! In the text format a counter is described under the name of its samples, which ends with
//! `_total`, and units and the end marker are absent. Source: Prometheus, exposition formats,
//! text-based format, version 0.0.4.

use std::collections::BTreeSet;

/// Converts metrics to the text format.
pub(super) fn from_open_metrics(text: &str) -> String {
    let counters: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let described = ["# HELP ", "# TYPE "]
            .into_iter()
            .find_map(|start| Some((start, line.strip_prefix(start)?.split_once(' ')?)));
        match described {
            Some((start, (name, rest))) => {
                let suffix = if counters.contains(name) { "_total" } else { "" };
                out.extend([start, name, suffix, " ", rest]);
            }
            None if line.starts_with("# ") => continue,
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::from_open_metrics;

    #[test]
    fn counters_are_described_by_the_name_of_their_samples() {
        let open = "# HELP a_seconds Time used.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
                    a_seconds_total{n=\"# TYPE x counter\"} 1.5\n# HELP b Things.\n# TYPE b gauge\n\
                    b 2\n# EOF\n";
        let text = "# HELP a_seconds_total Time used.\n# TYPE a_seconds_total counter\n\
                    a_seconds_total{n=\"# TYPE x counter\"} 1.5\n# HELP b Things.\n# TYPE b gauge\n\
                    b 2\n";
        assert_eq!(from_open_metrics(open), text);
        assert_eq!(from_open_metrics("# EOF\n"), "");
    }
}
