//! Metrics in the text format of Prometheus.
//!
//! Names follow the conventions of Prometheus: base units, `_total` for counters. Labels are names
//! of configured resources and stable reasons, so that the configuration bounds the number of
//! series.
//!
//! Each family is defined once (`family.rs`); `GET /metrics` and `docs/reference/metrics.md` have
//! the same descriptions.
//!
//! [`Readings::read_from`] reads the values from the node, [`render`] writes them, and [`page`]
//! describes them.
#![forbid(unsafe_code)]

mod disks;
mod family;
mod host;
mod minimums;
mod nbd;
mod ports;
mod power;
mod readings;
mod reference;
mod sriov;
mod stores;
mod teams;
mod text_format;
mod vmq;
mod vms;
mod workers;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use suimon_contract::{ApiError, ErrorCode};

pub use readings::Readings;
pub use reference::page;

/// Content type of the text written by [`render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Renders all metrics as text.
///
/// # Errors
/// Defects of the metrics' definitions.
pub fn render(readings: &Readings) -> Result<String, ApiError> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(readings.clone()));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)
        .map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))?;
    Ok(text_format::from_open_metrics(&text))
}

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_host(&mut encoder)?;
        self.encode_ports(&mut encoder)?;
        self.encode_teams(&mut encoder)?;
        self.encode_vmq(&mut encoder)?;
        self.encode_stores(&mut encoder)?;
        self.encode_disks(&mut encoder)?;
        self.encode_minimums(&mut encoder)?;
        self.encode_nbd(&mut encoder)?;
        self.encode_power(&mut encoder)?;
        self.encode_vms(&mut encoder)?;
        self.encode_sriov(&mut encoder)?;
        self.encode_workers(&mut encoder)
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
