//! Definition of columns and of what several tables share.

/// Side of a column to which its cells are aligned. Numbers are aligned right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A column of a table.
pub(crate) struct Column {
    /// Title in the table.
    pub(crate) title: &'static str,
    /// Side to which its cells are aligned.
    pub(crate) align: Align,
    /// Fields of the row in `--json` from which the cell is made, separated by `, `. Inner fields follow
    /// a dot, elements of a list `[]`.
    pub(crate) fields: &'static str,
    /// Unit of the JSON field; empty for words and plain numbers.
    pub(crate) unit: &'static str,
    /// Meaning, in whole sentences.
    pub(crate) meaning: &'static str,
}

/// Unit of rates that Storage QoS schedules.
pub(super) const IOPS: &str = "normalised IOPS";

/// Health of a network object.
pub(super) const HEALTH: Column = text(
    "HEALTH",
    "condition.health, condition.reason",
    "`up`: as configured, and frames can pass. `down`: as configured, but the peer is missing (no VM, no \
     carrier). `failed`: not as configured; the reason follows, and the daemon retries after 1 s, doubling \
     to 30 s.",
);

/// A column of words.
pub(super) const fn text(
    title: &'static str,
    fields: &'static str,
    meaning: &'static str,
) -> Column {
    Column { title, align: Align::Left, fields, unit: "", meaning }
}

/// A column of numbers.
pub(super) const fn number(
    title: &'static str,
    fields: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> Column {
    Column { title, align: Align::Right, fields, unit, meaning }
}

/// Columns of a table, and where the table is printed.
pub(crate) struct Columns {
    /// Commands that print the table, each with `suimon`.
    pub(crate) commands: &'static [&'static str],
    /// What a row describes, as the end of "One row per".
    pub(crate) row: &'static str,
    /// Place of the rows in the output of `--json`: `[]` for the elements of the output.
    pub(crate) path: &'static str,
    /// Schema of a row in the OpenAPI document; `None` if only `suimon` prints it.
    pub(crate) schema: Option<&'static str>,
    /// The columns, in their order.
    pub(crate) all: &'static [Column],
}
