//! Measures with names in both languages.

use suimon_lab_run::{Better, Measure, Words};

/// Returns a measure. `en` and `ja` are its name.
pub(crate) fn measure(id: &str, en: &str, ja: &str, unit: &str, better: Better) -> Measure {
    Measure::new(id, Words::new(en, ja), unit, better)
}
