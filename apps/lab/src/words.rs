//! Text in the two languages of reports, defined in `formats/lab`.

pub(crate) use suimon_lab_run::{Language, Words};
