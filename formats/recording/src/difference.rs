//! Comparison of a recorded decision with the one that the current policy makes.

use core::fmt;

use serde::Serialize;
use serde_json::Value;

/// Maximum length of a displayed value in characters.
const SHOWN_MAX: usize = 120;
/// Number of equal characters displayed before the first difference.
const ALIKE_SHOWN: usize = 40;

/// First difference between a recorded decision and that of the current policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// JSON path within the decision, such as `moves.0.to`; empty for the whole decision.
    #[serde(rename = "place")]
    pub path: String,
    /// Recorded value at the path.
    pub recorded: String,
    /// Value at the path in the decision of the current policy.
    #[serde(rename = "now")]
    pub recomputed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, recorded, recomputed: now } = self;
        let path = if path.is_empty() { "decision" } else { path };
        write!(f, "{path}: recorded {recorded}, replayed {now}")
    }
}

/// Returns the first difference between two different JSON texts: the recorded decision, and `now`,
/// that of the current policy.
pub(crate) fn first_difference(recorded: &[u8], now: &[u8]) -> Difference {
    let parse = |text: &[u8]| serde_json::from_slice::<Value>(text);
    match (parse(recorded), parse(now)) {
        (Ok(a), Ok(b)) => {
            let difference = walk(&a, &b, String::new());
            difference.unwrap_or_else(|| raw(recorded, now))
        }
        _ => raw(recorded, now),
    }
}

fn raw(recorded: &[u8], now: &[u8]) -> Difference {
    match (core::str::from_utf8(recorded), core::str::from_utf8(now)) {
        (Ok(recorded), Ok(now)) => Difference::from_texts(String::new(), recorded, now),
        _ => {
            let escape = |bytes: &[u8]| bytes.escape_ascii().to_string();
            Difference::from_texts(String::new(), &escape(recorded), &escape(now))
        }
    }
}

impl Difference {
    /// Returns the difference of two different texts at `path`; long texts are truncated around
    /// their first differing character.
    pub(crate) fn from_texts(path: String, recorded: &str, now: &str) -> Self {
        let common = recorded.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
        let start = common.saturating_sub(ALIKE_SHOWN);
        let excerpt = |text: &str| {
            let chars = text.chars().count();
            if chars <= SHOWN_MAX {
                return text.to_owned();
            }
            let before = if start > 0 { "…" } else { "" };
            let after = if chars > start + SHOWN_MAX { "…" } else { "" };
            let middle: String = text.chars().skip(start).take(SHOWN_MAX).collect();
            format!("{before}{middle}{after}")
        };
        Self { path, recorded: excerpt(recorded), recomputed: excerpt(now) }
    }
}

fn walk(a: &Value, b: &Value, path: String) -> Option<Difference> {
    let child_path =
        |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let none = Value::Null;
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys = x.keys().chain(y.keys().filter(|key| !x.contains_key(*key)));
            keys.map(|key| (key, x.get(key).unwrap_or(&none), y.get(key).unwrap_or(&none)))
                .find_map(|(key, a, b)| walk(a, b, child_path(key)))
        }
        (Value::Array(x), Value::Array(y)) => (0..x.len().max(y.len())).find_map(|index| {
            let (a, b) = (x.get(index).unwrap_or(&none), y.get(index).unwrap_or(&none));
            walk(a, b, child_path(&index.to_string()))
        }),
        (a, b) if a == b => None,
        (a, b) => {
            let to_text = |value: &Value| match value {
                Value::Null => "nothing".to_owned(),
                value => value.to_string(),
            };
            Some(Difference::from_texts(path, &to_text(a), &to_text(b)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_of_long_decisions_is_excerpted() {
        let long_text = |end: &str| format!("{}{end}", "x".repeat(500));
        for (a, b) in [
            (long_text("1"), long_text("2")),
            (long_text(""), long_text("2")),
            (format!("[{:?}]", long_text("1")), format!("[{:?}]", long_text("2"))),
        ] {
            let difference = first_difference(a.as_bytes(), b.as_bytes());
            assert_ne!(difference.recorded, difference.recomputed);
            assert!(
                difference.recomputed.contains('2') && difference.recomputed.starts_with('…'),
                "{difference}"
            );
            assert!(difference.recomputed.chars().count() <= SHOWN_MAX + 2);
        }
        let difference = first_difference(b"\xff", b"\xfe");
        assert_eq!(
            (difference.recorded.as_str(), difference.recomputed.as_str()),
            ("\\xff", "\\xfe")
        );
    }
}
