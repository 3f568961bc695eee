//! Definition of columns, and columns common to several tables.

/// Alignment of a column's cells. Numbers are right-aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Column of a printed table.
pub(crate) struct Column {
    /// Title in the table's header.
    pub(crate) title: &'static str,
    /// Alignment of the column's cells.
    pub(crate) align: Align,
    /// Fields of the row in `--json` from which the cell is made, separated by `, `. Inner fields
    /// follow a dot, elements of a list `[]`.
    pub(crate) json_fields: &'static str,
    /// Unit of the JSON field; empty for words and plain numbers.
    pub(crate) unit: &'static str,
    /// Meaning of the column in complete sentences.
    pub(crate) meaning: &'static str,
}

/// Unit of rates that Storage QoS schedules.
pub(super) const UNIT_IOPS: &str = "normalised IOPS";

/// Health column of network objects.
pub(super) const HEALTH: Column = text_column(
    "HEALTH",
    "condition.health, condition.reason",
    "`up`: as configured, and frames can pass. `down`: as configured, but the peer is missing (no VM, no \
     carrier). `failed`: not as configured; the reason follows, and the daemon retries after 1 s, doubling \
     to 30 s.",
);

/// Defines a column of text.
pub(super) const fn text_column(
    title: &'static str,
    fields: &'static str,
    meaning: &'static str,
) -> Column {
    Column { title, align: Align::Left, json_fields: fields, unit: "", meaning }
}

/// Defines a column of numbers.
pub(super) const fn number_column(
    title: &'static str,
    fields: &'static str,
    unit: &'static str,
    meaning: &'static str,
) -> Column {
    Column { title, align: Align::Right, json_fields: fields, unit, meaning }
}

/// Columns of a table, and the commands that print it.
pub(crate) struct Columns {
    /// Commands that print the table, each beginning with `suimon`.
    pub(crate) commands: &'static [&'static str],
    /// Object that a row describes, in words that follow "One row per".
    pub(crate) row_object: &'static str,
    /// Path of the rows in the output of `--json`; `[]` denotes the elements of a list.
    pub(crate) json_path: &'static str,
    /// Schema of a row in the OpenAPI document; `None` if only `suimon` prints it.
    pub(crate) schema: Option<&'static str>,
    /// Columns in the order of output.
    pub(crate) columns: &'static [Column],
}
