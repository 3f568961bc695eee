//! Metrics of power management.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::{PowerEffect, PowerZoneStatus};

use crate::family::{Family, Value};
use crate::readings::Readings;

const IN_EFFECT: Family = Family::gauge(
    "suimon_power_plan_in_effect",
    "",
    &["plan"],
    "1 if every CPU setting of the power plan is in effect, else 0",
);

const SETTINGS: Family = Family::gauge(
    "suimon_power_settings",
    "",
    &["state"],
    "CPU settings of the power plan by state: `in_effect`, or `lacking` (not in effect)",
);

const ENERGY: Family = Family::counter(
    "suimon_power_energy_joules",
    "joules",
    &["zone", "name"],
    "Energy since the daemon first read the counter of the zone (RAPL)",
);

const WATTS: Family = Family::gauge(
    "suimon_power_watts",
    "watts",
    &["zone", "name"],
    "Mean power of the zone since the previous reading",
);

pub(super) fn families() -> Vec<Family> {
    vec![IN_EFFECT, SETTINGS, ENERGY, WATTS]
}

#[allow(clippy::cast_precision_loss, reason = "metrics are floating point")]
impl Readings {
    pub(super) fn encode_power(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let power = &self.power;
        let plan = power.config.iter().map(|config| {
            ([config.plan.to_string()], Value::flag(power.effect == PowerEffect::Full))
        });
        IN_EFFECT.write_if_any(encoder, plan)?;
        let number_of = |is_in_effect: bool| {
            let settings =
                power.settings.iter().filter(|setting| setting.in_effect == is_in_effect);
            Value::real_from_integer(settings.count() as u64)
        };
        let states = [("in_effect", true), ("lacking", false)];
        let counts =
            states.map(|(state, is_in_effect)| ([state.to_owned()], number_of(is_in_effect)));
        SETTINGS.write_if_any(encoder, counts.into_iter().filter(|_| power.config.is_some()))?;
        let zones = &power.energy.zones;
        let labels = |zone: &PowerZoneStatus| [zone.zone.clone(), zone.name.clone()];
        let energy =
            zones.iter().map(|zone| (labels(zone), Value::Real(zone.energy_uj as f64 / 1e6)));
        ENERGY.write_if_any(encoder, energy)?;
        let watts = zones
            .iter()
            .filter_map(|zone| Some((labels(zone), Value::Real(zone.milliwatts? as f64 / 1e3))));
        WATTS.write_if_any(encoder, watts)
    }
}
