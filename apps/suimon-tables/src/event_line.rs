//! Text output of events.

use suimon_contract::Event;

use crate::units;

/// Formats an event as one line: `2026-03-01T12:30:05.123Z  4711  3004 info     nic/web: connected
/// (features=0x1)`.
pub fn line(event: &Event) -> String {
    let mut line = format!(
        "{}  {:>6}  {} {:7}  {}: {}",
        units::timestamp(event.time_unix_ms),
        event.sequence,
        event.kind_number,
        event.severity.as_str(),
        event.subject,
        event.text
    );
    let fields = event.fields.iter().filter(|(_, value)| !states(&event.text, value));
    let fields: Vec<_> = fields.map(|(key, value)| format!("{key}={value}")).collect();
    if !fields.is_empty() {
        line.push_str(&format!(" ({})", fields.join(", ")));
    }
    line
}

/// Returns true if the text contains the value, not as part of a longer word.
fn states(text: &str, value: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(value).any(|(offset, matched)| {
        let (before, rest) = text.split_at(offset);
        let after = rest.strip_prefix(matched).unwrap_or_default();
        is_end(before.chars().next_back()) && is_end(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use suimon_contract::Severity;

    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = Event {
            sequence: 47,
            time_unix_ms: 1_700_000_000_123,
            kind_number: 3004,
            severity: Severity::Info,
            subject: "nic/web".to_owned(),
            text: "a VM connected".to_owned(),
            fields: [("socket".to_owned(), "/run/web.sock".to_owned())].into(),
        };
        // A field repeated in the text is omitted; `--json` contains it.
        let repeated = Event {
            text: "The file a.vhdx was made, 10 MiB.".to_owned(),
            fields: [("file", "a.vhdx"), ("disks", "1"), ("size", "10"), ("made", "")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ..event.clone()
        };
        insta::assert_snapshot!(line(&repeated), @"2023-11-14T22:13:20.123Z      47  3004 info     nic/web: The file a.vhdx was made, 10 MiB. (disks=1)");
        insta::assert_snapshot!(line(&event), @"2023-11-14T22:13:20.123Z      47  3004 info     nic/web: a VM connected (socket=/run/web.sock)");
    }
}
