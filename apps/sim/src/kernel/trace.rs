//! What happened, as a number that differs if anything differs, and as lines if wanted.

use std::fmt::{self, Write};

use suimon_quantity::Time;

/// What a fact says of itself.
pub(crate) trait Note {
    /// What happened, in a word.
    fn word(&self) -> &'static str;
    /// With what: everything by which two such facts can differ.
    fn figures(&self) -> Vec<u64>;
}

/// The facts of a run.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    hash: u64,
    facts: u64,
    lines: Option<String>,
}

impl Trace {
    /// Without facts. `keeps_lines`: they can be read afterwards, and take memory.
    pub(crate) fn new(keeps_lines: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, facts: 0, lines: keeps_lines.then(String::new) }
    }

    /// Writes a fact down.
    pub(crate) fn note(&mut self, now: Time, fact: &impl Note) {
        self.facts += 1;
        let figures = fact.figures();
        self.mix(&now.as_ns().to_le_bytes());
        self.mix(fact.word().as_bytes());
        for figure in &figures {
            self.mix(&figure.to_le_bytes());
        }
        if let Some(lines) = &mut self.lines {
            // Writing to a string does not fail.
            let _ = write!(lines, "{} {}", now.as_ns(), fact.word());
            for figure in figures {
                let _ = write!(lines, " {figure}");
            }
            lines.push('\n');
        }
    }

    /// FNV-1a: what differs once differs for ever, which is all that is asked of it.
    fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// How many facts.
    pub(crate) const fn facts(&self) -> u64 {
        self.facts
    }

    /// All facts, one a line: nanoseconds, word, figures; empty unless they were to be kept.
    pub(crate) fn lines(&self) -> &str {
        self.lines.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hash)
    }
}
