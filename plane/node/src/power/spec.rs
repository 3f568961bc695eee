//! Conversion of the power configuration between the API and the policies.

use std::time::Duration;

use suimon_contract::{EnergyPreference, PowerConfig, PowerDataPlaneStatus, PowerPlanName};
use suimon_power::{DataPlaneSettings, PowerPlan, PowerSpec};
use suimon_vmq::{Load, WaterMarks};

/// Returns the policy's input for a configuration.
pub(crate) fn power_spec(config: &PowerConfig) -> PowerSpec {
    PowerSpec {
        plan: match config.plan {
            PowerPlanName::Balanced => PowerPlan::Balanced,
            PowerPlanName::HighPerformance => PowerPlan::HighPerformance,
            PowerPlanName::PowerSaver => PowerPlan::PowerSaver,
            PowerPlanName::Custom => PowerPlan::Custom,
        },
        governor: config.governor.as_ref().map(ToString::to_string),
        energy_preference: config
            .energy_preference
            .map(EnergyPreference::as_str)
            .map(str::to_owned),
        performance_percent_min: config.performance_percent_min,
        performance_percent_max: config.performance_percent_max,
        turbo: config.turbo,
        idle_state_max: config.idle_state_max.clone(),
        idle_latency_us_max: config.idle_latency_us_max,
        parking: config.parks_workers,
        poll_us: config.poll_budget_us,
        vmq_high_percent: config.vmq_high_percent,
        vmq_low_percent: config.vmq_low_percent,
    }
}

/// Returns the data-plane parameters of a plan, or the defaults without a plan.
pub(crate) fn data_plane(config: Option<&PowerConfig>) -> DataPlaneSettings {
    config.map_or(DataPlaneSettings::DEFAULT, |config| power_spec(config).data_plane())
}

/// Returns the loads at which VMQ moves queues away from a worker (high) and empties a worker
/// (low).
pub(crate) fn water_marks(share: DataPlaneSettings) -> WaterMarks {
    WaterMarks {
        high: Load::percent(u32::from(share.vmq_high_percent)),
        low: Load::percent(u32::from(share.vmq_low_percent)),
    }
}

/// Returns the API status of the data-plane parameters.
pub(crate) fn data_plane_status(share: DataPlaneSettings) -> PowerDataPlaneStatus {
    PowerDataPlaneStatus {
        parks_workers: share.parking,
        poll_budget_us: microseconds(share.poll_budget),
        vmq_high_percent: share.vmq_high_percent,
        vmq_low_percent: share.vmq_low_percent,
    }
}

fn microseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
