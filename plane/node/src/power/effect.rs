//! Extent to which settings are in effect.

use suimon_contract::{PowerEffect, PowerSettingStatus};

/// Returns whether all, some or none of the settings are in effect. `Full` if there are no
/// settings.
pub(super) fn overall_effect(settings: &[PowerSettingStatus]) -> PowerEffect {
    let count = settings.iter().filter(|setting| setting.in_effect).count();
    match count {
        count if count == settings.len() => PowerEffect::Full,
        0 => PowerEffect::None,
        _ => PowerEffect::Partial,
    }
}
