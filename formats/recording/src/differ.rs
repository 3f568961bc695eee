//! What differs between two decisions.

use core::fmt;

use serde::Serialize;
use serde_json::Value;

/// Characters of a value that are told.
const SHOWN_MAX: usize = 120;

/// Where a decision is another one than was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where in the decision: `moves.0.to`.
    pub place: String,
    /// What was recorded there.
    pub recorded: String,
    /// What the policy decides now.
    pub now: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, recorded, now } = self;
        let place = if place.is_empty() { "decision" } else { place };
        write!(f, "{place}: {recorded} was recorded, and {now} is decided now")
    }
}

/// The first that differs between two texts of JSON, which are not the same bytes.
pub(crate) fn differ(recorded: &[u8], now: &[u8]) -> Difference {
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
    let shown = |text: &[u8]| shorten(&String::from_utf8_lossy(text));
    Difference { place: String::new(), recorded: shown(recorded), now: shown(now) }
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
                of => shorten(&of.to_string()),
            };
            Some(Difference { place, recorded: shown(a), now: shown(b) })
        }
    }
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    text.chars().take(SHOWN_MAX).chain("…".chars()).collect()
}
