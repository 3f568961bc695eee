//! Measures with names in both languages.

use suimon_lab_run::{LocalizedText, Measure, MeasureDirection};

/// Returns a measure. `en` and `ja` are its name in English and Japanese.
pub(crate) fn measure(
    id: &str,
    en: &str,
    ja: &str,
    unit: &str,
    better: MeasureDirection,
) -> Measure {
    Measure::new(id, LocalizedText::new(en, ja), unit, better)
}
