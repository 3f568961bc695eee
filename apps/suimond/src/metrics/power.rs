//! Metrics of power.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use suimon_contract::PowerEffect;

use super::{Readings, encode_gauges};

#[allow(clippy::cast_precision_loss, reason = "gauges are floating point")]
impl Readings {
    pub(super) fn encode_power(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let power = &self.power;
        let plan = power.config.iter().map(|config| {
            let made = match power.effect {
                PowerEffect::Full => 1.0,
                PowerEffect::Off | PowerEffect::Partial | PowerEffect::None => 0.0,
            };
            ([("plan", config.plan.to_string())], made)
        });
        let help = "Whether all that the power plan asks of CPUs is so";
        encode_gauges(encoder, "suimon_power_plan_in_effect", help, plan)?;
        let of = |made: bool| {
            power.settings.iter().filter(|setting| setting.in_effect == made).count() as f64
        };
        let states = [("in_effect", true), ("lacking", false)];
        let counts = states.map(|(state, made)| ([("state", state.to_owned())], of(made)));
        let counts = counts.into_iter().filter(|_| power.config.is_some());
        let help = "What the power plan asks of CPUs, one by one, by whether it is so";
        encode_gauges(encoder, "suimon_power_settings", help, counts)?;
        self.encode_energy(encoder)
    }

    fn encode_energy(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let zones = &self.power.energy.zones;
        if zones.is_empty() {
            return Ok(());
        }
        let labels = |zone: &suimon_contract::PowerZoneStatus| {
            [("zone", zone.zone.clone()), ("name", zone.name.clone())]
        };
        let help = "Energy used since the daemon first read the zone's counter";
        let name = "suimon_power_energy_joules";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for zone in zones {
            let joules = zone.energy_uj as f64 / 1e6;
            ConstCounter::new(joules).encode(family.encode_family(&labels(zone))?)?;
        }
        let watts =
            zones.iter().filter_map(|zone| Some((labels(zone), zone.milliwatts? as f64 / 1e3)));
        encode_gauges(encoder, "suimon_power_watts", "Power since the reading before", watts)
    }
}
