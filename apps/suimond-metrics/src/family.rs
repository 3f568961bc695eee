//! Families of metrics. Each is defined once, with the description shown by `GET /metrics` and the
//! reference page.

use std::borrow::Cow;
use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use suimon_contract::{RENAMES, RenamedItem};

/// Type of the metrics of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FamilyKind {
    /// Monotonic counter; restarts at 0 with the daemon or the object.
    Counter,
    /// Value that may increase and decrease.
    Gauge,
}

/// Description of a family of metrics.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// Name; for a counter without `_total`.
    name: Cow<'static, str>,
    pub(crate) kind: FamilyKind,
    /// Unit of the values in the name of the metric; empty for counts, flags and identifiers.
    pub(crate) unit: &'static str,
    /// Names of the labels in order.
    pub(crate) labels: &'static [&'static str],
    /// Meaning in one or more sentences, without the final full stop.
    help: Cow<'static, str>,
}

/// Value of one time series.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Integer(u64),
    Real(f64),
}

impl Value {
    /// Returns 1 if `is_set`, else 0.
    pub(super) const fn flag(is_set: bool) -> Self {
        Self::Real(if is_set { 1.0 } else { 0.0 })
    }

    /// Creates a value in seconds from nanoseconds.
    #[allow(clippy::cast_precision_loss, reason = "metrics are floating point")]
    pub(super) const fn seconds_from_ns(ns: u64) -> Self {
        Self::Real(ns as f64 / 1e9)
    }

    /// Converts an integer to floating point, as used by gauges.
    #[allow(clippy::cast_precision_loss, reason = "metrics are floating point")]
    pub(super) const fn real_from_integer(number: u64) -> Self {
        Self::Real(number as f64)
    }

    /// Converts percent to a ratio.
    #[allow(clippy::cast_precision_loss, reason = "metrics are floating point")]
    pub(super) const fn ratio_from_percent(percent: u64) -> Self {
        Self::Real(percent as f64 / 100.0)
    }

    /// Converts parts per million to a ratio.
    pub(super) fn ratio_from_ppm(ppm: u32) -> Self {
        Self::Real(f64::from(ppm) / 1e6)
    }
}

impl Family {
    /// Defines a family of counters.
    pub(super) const fn counter(
        name: &'static str,
        unit: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        let (name, help) = (Cow::Borrowed(name), Cow::Borrowed(help));
        Self { name, kind: FamilyKind::Counter, unit, labels, help }
    }

    /// Defines a family of gauges.
    pub(super) const fn gauge(
        name: &'static str,
        unit: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        let (name, help) = (Cow::Borrowed(name), Cow::Borrowed(help));
        Self { name, kind: FamilyKind::Gauge, unit, labels, help }
    }

    /// Returns this family for a kind of port, such as `suimon_nic_up` for `up`. `{peer}` in the
    /// description is replaced by `peer`, the component at the other side of the port.
    pub(super) fn for_port_kind(
        &self,
        prefix: &str,
        label: &'static [&'static str],
        peer: &str,
    ) -> Self {
        Self {
            name: Cow::Owned(format!("{prefix}_{}", self.name)),
            help: Cow::Owned(self.help.replace("{peer}", peer)),
            labels: label,
            ..self.clone()
        }
    }

    /// Returns the name of the family's samples: with `_total` for counters.
    pub(crate) fn sample_name(&self) -> String {
        match self.kind {
            FamilyKind::Counter => format!("{}_total", self.name),
            FamilyKind::Gauge => self.name.to_string(),
        }
    }

    /// Returns the meaning with the final full stop, as shown by `GET /metrics`.
    pub(crate) fn help_text(&self) -> String {
        format!("{}.", self.help)
    }

    /// Returns the family under its old name and with its old labels, if it was renamed.
    fn with_old_name(&self) -> Option<Self> {
        RENAMES.iter().find_map(|rename| match rename.item {
            RenamedItem::Metric { old_labels } if rename.new == self.name => Some(Self {
                name: Cow::Borrowed(rename.old),
                labels: old_labels,
                help: Cow::Owned(format!(
                    "Deprecated, removed in version {}: use {}",
                    rename.removed_in,
                    self.sample_name()
                )),
                ..self.clone()
            }),
            _ => None,
        })
    }

    /// Writes the family and its series. Each series has one value per label, and the value of the
    /// sample. A renamed family is also written under its old name.
    pub(super) fn write<const N: usize>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl Iterator<Item = ([String; N], Value)>,
    ) -> fmt::Result {
        match self.with_old_name() {
            None => self.write_once(encoder, series),
            Some(old) => {
                let series: Vec<_> = series.collect();
                self.write_once(encoder, series.iter().cloned())?;
                old.write_once(encoder, series.into_iter())
            }
        }
    }

    fn write_once<const N: usize>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl Iterator<Item = ([String; N], Value)>,
    ) -> fmt::Result {
        debug_assert_eq!(N, self.labels.len(), "{}", self.name);
        let kind = match self.kind {
            FamilyKind::Counter => MetricType::Counter,
            FamilyKind::Gauge => MetricType::Gauge,
        };
        let mut family = encoder.encode_descriptor(&self.name, &self.help_text(), None, kind)?;
        for (values, value) in series {
            let labels: Vec<(&str, String)> = self.labels.iter().copied().zip(values).collect();
            if labels.is_empty() {
                return self.encode(value, family);
            }
            self.encode(value, family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// Writes the family unless it has no series.
    pub(super) fn write_if_any<const N: usize>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        series: impl Iterator<Item = ([String; N], Value)>,
    ) -> fmt::Result {
        let mut series = series.peekable();
        if series.peek().is_none() { Ok(()) } else { self.write(encoder, series) }
    }

    fn encode(&self, value: Value, encoder: MetricEncoder<'_>) -> fmt::Result {
        match (self.kind, value) {
            (FamilyKind::Counter, Value::Integer(value)) => {
                ConstCounter::new(value).encode(encoder)
            }
            (FamilyKind::Counter, Value::Real(value)) => ConstCounter::new(value).encode(encoder),
            (FamilyKind::Gauge, Value::Integer(value)) => {
                ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(encoder)
            }
            (FamilyKind::Gauge, Value::Real(value)) => ConstGauge::new(value).encode(encoder),
        }
    }
}
