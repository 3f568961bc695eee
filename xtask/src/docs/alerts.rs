//! The reference page of metrics and alerts: tables that `suimond` prints, and the shipped alert
//! rules.

use anyhow::{Context, Result, bail};

const INTRODUCTION: &str = "<!-- Made by `cargo xtask docs` of the code and of dist/prometheus/suimon.rules.yml. -->\n\n\
# Metrics and alerts\n\n\
`GET /metrics` returns these metrics in the text format of Prometheus. The endpoint is on the Unix socket of \
the daemon, and with `[api]` on TCP; a token of `metrics_token_file` permits only this request. A series exists \
only while its object does. Counters start at 0 with the daemon or with the object, unless stated otherwise. Metrics of a NIC have the directions of \
the guest (`receive`: to the guest), opposite to RX and TX of `suimon nic list` and to `rx_bytes` in JSON.\n\n\
*Normalised IOPS* are operations per second in units of `normalization_bytes` of the store (8 KiB by default).\n\n";

/// Alert rule of Prometheus.
#[derive(Debug, Default, PartialEq, Eq)]
struct Alert {
    name: String,
    expression: String,
    pending_for: Option<String>,
    severity: String,
    summary: String,
    action: String,
}

/// Returns the page from the tables of metrics and the text of the rules.
pub(super) fn page(metrics: &str, rules: &str) -> Result<String> {
    let mut text = format!("{INTRODUCTION}{metrics}");
    text.push_str(
        "## Alerts\n\nThe rules of `/usr/share/doc/suimon/examples/prometheus/suimon.rules.yml`. An alert fires \
         when its expression has held for the time in the column *for*.\n\n\
         | alert | severity | expression | for | meaning | action |\n|---|---|---|---|---|---|\n",
    );
    for alert in parse(rules)? {
        text.push_str(&format!(
            "| {} | {} | `{}` | {} | {} | {} |\n",
            alert.name,
            alert.severity,
            alert.expression.replace('|', "\\|"),
            alert.pending_for.as_deref().unwrap_or("–"),
            without_templates(&alert.summary),
            without_templates(&alert.action),
        ));
    }
    Ok(text)
}

/// Returns a text with the names of labels in place of their templates.
fn without_templates(template: &str) -> String {
    template.replace("{{ $labels.", "*").replace(" }}", "*").replace('|', "\\|")
}

/// Reads the rules. They have one key a line.
fn parse(rules: &str) -> Result<Vec<Alert>> {
    let mut alerts: Vec<Alert> = Vec::new();
    for (number, line) in rules.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("- alert: ") {
            alerts.push(Alert { name: name.to_owned(), ..Alert::default() });
            continue;
        }
        let (Some(alert), Some((key, value))) = (alerts.last_mut(), line.split_once(": ")) else {
            continue;
        };
        let unquoted = || value.trim_matches('"').to_owned();
        match key {
            "expr" => alert.expression = value.to_owned(),
            "for" => alert.pending_for = Some(value.to_owned()),
            "labels" => {
                alert.severity = severity(value).with_context(|| format!("line {}", number + 1))?;
            }
            "summary" => alert.summary = unquoted(),
            "description" => alert.action = unquoted(),
            _ if line.starts_with('#') => {}
            other => bail!("line {}: alert rules have no key {other}", number + 1),
        }
    }
    for Alert { name, expression, severity, summary, action, .. } in &alerts {
        if [expression, severity, summary, action].into_iter().any(String::is_empty) {
            bail!("alert {name} lacks expr, labels, summary or description");
        }
    }
    Ok(alerts)
}

/// `critical` of `{severity: critical}`.
fn severity(labels: &str) -> Result<String> {
    let labels = labels.trim_matches(['{', '}']);
    let severity = labels.strip_prefix("severity: ").context("labels without a severity")?;
    Ok(severity.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "groups:\n  - name: suimon\n    rules:\n      - alert: A\n        # why\n        expr: x > 1\n        \
                         for: 1m\n        labels: {severity: critical}\n        annotations:\n          \
                         summary: \"{{ $labels.disk }} fails\"\n          description: \"Look: there.\"\n";

    #[test]
    fn rules_are_read_with_all_keys() {
        let page = page("", RULES).unwrap();
        assert!(
            page.contains("| A | critical | `x > 1` | 1m | *disk* fails | Look: there. |"),
            "{page}"
        );
    }

    #[test]
    fn a_rule_that_lacks_a_key_or_has_an_unknown_one_is_refused() {
        let lacking = RULES.replace("          description: \"Look: there.\"\n", "");
        assert!(parse(&lacking).unwrap_err().to_string().contains("alert A"));
        let unknown = RULES.replace("for: 1m", "keep_firing_for: 1m");
        assert!(parse(&unknown).unwrap_err().to_string().contains("keep_firing_for"));
    }
}
