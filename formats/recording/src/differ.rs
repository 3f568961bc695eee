//! Comparison of a recorded decision with a recomputed one.

use core::fmt;

use serde::Serialize;
use serde_json::Value;

/// Maximum length of a displayed value in characters.
const SHOWN_MAX: usize = 120;
/// Displayed context before the first difference, in characters.
const ALIKE_SHOWN: usize = 40;

/// First difference between a recorded and a recomputed decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// JSON path within the decision, such as `moves.0.to`; empty for the whole decision.
    #[serde(rename = "place")]
    pub path: String,
    /// Recorded value at the path.
    pub recorded: String,
    /// Value that the policy produces now.
    #[serde(rename = "now")]
    pub recomputed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path: place, recorded, recomputed: now } = self;
        let place = if place.is_empty() { "decision" } else { place };
        write!(f, "{place}: recorded {recorded}, replayed {now}")
    }
}

/// Returns the first difference between two different JSON texts.
pub(crate) fn first_difference(recorded: &[u8], now: &[u8]) -> Difference {
    let parse = |text: &[u8]| serde_json::from_slice::<Value>(text);
    match (parse(recorded), parse(now)) {
        (Ok(a), Ok(b)) => {
            let found = walk(&a, &b, String::new());
            found.unwrap_or_else(|| raw(recorded, now))
        }
        _ => raw(recorded, now),
    }
}

fn raw(recorded: &[u8], now: &[u8]) -> Difference {
    match (core::str::from_utf8(recorded), core::str::from_utf8(now)) {
        (Ok(recorded), Ok(now)) => Difference::from_texts(String::new(), recorded, now),
        _ => {
            let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
            Difference::from_texts(String::new(), &shown(recorded), &shown(now))
        }
    }
}

impl Difference {
    /// Returns the difference of two different texts; long texts are truncated around their first
    /// differing character.
    pub(crate) fn from_texts(place: String, recorded: &str, now: &str) -> Self {
        let alike = recorded.chars().zip(now.chars()).take_while(|(a, b)| a == b).count();
        let from = alike.saturating_sub(ALIKE_SHOWN);
        let shown = |text: &str| {
            let chars = text.chars().count();
            if chars <= SHOWN_MAX {
                return text.to_owned();
            }
            let before = if from > 0 { "…" } else { "" };
            let after = if chars > from + SHOWN_MAX { "…" } else { "" };
            let middle: String = text.chars().skip(from).take(SHOWN_MAX).collect();
            format!("{before}{middle}{after}")
        };
        Self { path: place, recorded: shown(recorded), recomputed: shown(now) }
    }
}

fn walk(a: &Value, b: &Value, place: String) -> Option<Difference> {
    let below =
        |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    let none = Value::Null;
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys = x.keys().chain(y.keys().filter(|key| !x.contains_key(*key)));
            keys.map(|key| (key, x.get(key).unwrap_or(&none), y.get(key).unwrap_or(&none)))
                .find_map(|(key, a, b)| walk(a, b, below(key)))
        }
        (Value::Array(x), Value::Array(y)) => (0..x.len().max(y.len())).find_map(|at| {
            let (a, b) = (x.get(at).unwrap_or(&none), y.get(at).unwrap_or(&none));
            walk(a, b, below(&at.to_string()))
        }),
        (a, b) if a == b => None,
        (a, b) => {
            let shown = |of: &Value| match of {
                Value::Null => "nothing".to_owned(),
                of => of.to_string(),
            };
            Some(Difference::from_texts(place, &shown(a), &shown(b)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_of_long_decisions_is_excerpted() {
        let long = |end: &str| format!("{}{end}", "x".repeat(500));
        for (a, b) in [
            (long("1"), long("2")),
            (long(""), long("2")),
            (format!("[{:?}]", long("1")), format!("[{:?}]", long("2"))),
        ] {
            let found = first_difference(a.as_bytes(), b.as_bytes());
            assert_ne!(found.recorded, found.recomputed);
            assert!(found.recomputed.contains('2') && found.recomputed.starts_with('…'), "{found}");
            assert!(found.recomputed.chars().count() <= SHOWN_MAX + 2);
        }
        let found = first_difference(b"\xff", b"\xfe");
        assert_eq!((found.recorded.as_str(), found.recomputed.as_str()), ("\\xff", "\\xfe"));
    }
}
