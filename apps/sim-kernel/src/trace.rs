//! Trace of a run: a hash that differs if any fact differs, and optionally lines of text.

use std::fmt::{self, Write};

use suimon_quantity::Time;

/// Textual form of a fact.
pub trait TraceFact {
    /// Returns the kind of the fact as one word without spaces.
    fn kind(&self) -> &'static str;
    /// Returns the values of the fact. Facts of one kind that differ have different values.
    fn values(&self) -> Vec<u64>;
}

/// Trace of the facts of a run.
#[derive(Clone, Debug)]
pub struct Trace {
    hash: u64,
    facts: u64,
    lines: Option<String>,
}

impl Trace {
    /// Returns an empty trace. With `keeps_lines`, its lines can be read afterwards, which takes
    /// memory.
    pub fn new(keeps_lines: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, facts: 0, lines: keeps_lines.then(String::new) }
    }

    /// Adds a fact to the trace.
    pub fn add_fact(&mut self, now: Time, fact: &impl TraceFact) {
        self.facts += 1;
        let figures = fact.values();
        self.mix(&now.as_ns().to_le_bytes());
        self.mix(fact.kind().as_bytes());
        for figure in &figures {
            self.mix(&figure.to_le_bytes());
        }
        if let Some(lines) = &mut self.lines {
            // Writing to a string does not fail.
            let _ = write!(lines, "{} {}", now.as_ns(), fact.kind());
            for figure in figures {
                let _ = write!(lines, " {figure}");
            }
            lines.push('\n');
        }
    }

    /// Adds bytes to the hash (FNV-1a). Collision resistance is not required: after the first
    /// difference, all later hashes differ.
    fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the number of facts.
    pub const fn facts(&self) -> u64 {
        self.facts
    }

    /// Returns all facts, one per line: time in ns, kind, values. Empty unless lines are kept.
    pub fn lines(&self) -> &str {
        self.lines.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hash)
    }
}
