//! Types of detail views.

/// Detail view of one kind of object.
pub(crate) struct Details {
    /// Command that prints the view, without `suimon`.
    pub(crate) command: &'static str,
    /// Lines beside those of configuration keys, in the order of the view.
    pub(crate) lines: &'static [Line],
}

/// Line of a detail view.
pub(crate) struct Line {
    /// Title at the beginning of the line.
    pub(crate) title: &'static str,
    /// Fields of `--json` from which the line is made, separated by `, `.
    pub(crate) fields: &'static str,
    /// Meaning of the line in complete sentences.
    pub(crate) meaning: &'static str,
}

pub(super) const fn line(title: &'static str, fields: &'static str, meaning: &'static str) -> Line {
    Line { title, fields, meaning }
}

pub(super) const HEALTH: Line = line(
    "health",
    "condition.health, condition.reason",
    "As the column HEALTH of the `list` command.",
);
