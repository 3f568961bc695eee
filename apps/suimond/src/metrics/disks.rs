//! Metrics of disks and stores: what was asked, how long it took, and what Storage QoS gave.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use suimon_contract::{
    DiskCounters, DiskRequestCounters, DiskStatus, QosDelivery, StorageState, StoreStatus,
};

use super::{Readings, encode_gauges};

/// What a counter of requests is called, and what it counts.
type RequestMetric = (&'static str, &'static str, fn(&DiskRequestCounters) -> u64);

const REQUEST_METRICS: [RequestMetric; 3] = [
    ("suimon_disk_requests", "Requests that were answered", |of| of.requests),
    ("suimon_disk_bytes", "Bytes of these", |of| of.bytes),
    ("suimon_disk_failed_requests", "Of these, those that were not carried out", |of| of.errors),
];

/// A quantile of latencies, and what it is in nanoseconds.
type Quantile = (&'static str, fn(&DiskRequestCounters) -> u64);

const QUANTILES: [Quantile; 3] = [
    ("0.5", |of| of.latency_ns_p50),
    ("0.99", |of| of.latency_ns_p99),
    ("1", |of| of.latency_ns_max),
];

/// What a gauge of a disk's share is called, and what it shows.
type FlowMetric = (&'static str, &'static str, fn(&QosDelivery) -> u64);

const FLOW_METRICS: [FlowMetric; 3] = [
    ("suimon_disk_entitled_iops", "What its minimum came to in the last 5 s", |of| {
        of.entitled_iops
    }),
    ("suimon_disk_demanded_iops", "What was asked for in the last 5 s", |of| of.demanded_iops),
    ("suimon_disk_delivered_iops", "What was delivered in the last 5 s", |of| of.delivered_iops),
];

/// What a gauge of a store is called, and what it shows, if that is known.
type StoreMetric = (&'static str, &'static str, fn(&StoreStatus) -> Option<f64>);

#[allow(clippy::cast_precision_loss, reason = "gauges are floating point")]
const STORE_METRICS: [StoreMetric; 14] = [
    ("suimon_store_up", "Whether it is as desired", |of| {
        Some(f64::from(u8::from(of.state == StorageState::Ready)))
    }),
    ("suimon_store_free_bytes", "Bytes that nothing is in", |of| {
        of.free_bytes.map(|bytes| bytes as f64)
    }),
    ("suimon_store_total_bytes", "Bytes of its file system or device", |of| {
        of.total_bytes.map(|bytes| bytes as f64)
    }),
    ("suimon_store_nearly_full", "Whether more is used than its full_warning_percent", |of| {
        Some(f64::from(u8::from(of.nearly_full)))
    }),
    ("suimon_store_virtual_bytes", "Bytes of its disks as their guests see them", |of| {
        Some(of.virtual_bytes as f64)
    }),
    ("suimon_store_allocated_bytes", "Bytes that the files of its disks take", |of| {
        Some(of.allocated_bytes as f64)
    }),
    ("suimon_store_overcommit_ratio", "Virtual bytes by total bytes", |of| {
        of.overcommit_percent.map(|percent| percent as f64 / 100.0)
    }),
    ("suimon_store_capability_iops", "What it is taken to be able to do", |of| {
        of.capability_iops.map(|iops| iops as f64)
    }),
    ("suimon_store_measured_iops", "What it could do when it was last measured", |of| {
        of.measured.as_ref().map(|found| found.iops as f64)
    }),
    ("suimon_store_estimated_iops", "What it did when requests last waited for it", |of| {
        of.estimate.map(|found| found.iops as f64)
    }),
    ("suimon_store_estimate_age_seconds", "How long ago that was", |of| {
        of.estimate.map(|found| found.age_ms as f64 / 1e3)
    }),
    ("suimon_store_promised_iops", "What all minimums on it come to", |of| {
        Some(of.promised_iops as f64)
    }),
    ("suimon_store_delivered_iops", "What it did in the last 5 s", |of| {
        Some(of.delivered_iops as f64)
    }),
    ("suimon_store_latency_seconds", "What its device takes for a request", |of| {
        of.latency_ns.map(|ns| ns as f64 / 1e9)
    }),
];

impl Readings {
    pub(super) fn encode_disks(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in STORE_METRICS {
            let stores = self.stores.iter().filter_map(|store| {
                Some(([("store", store.config.name.to_string())], value(store)?))
            });
            encode_gauges(encoder, name, help, stores)?;
        }
        let up = self.disks.iter().map(|disk| {
            // What has space on a full store goes on.
            let is_ready = matches!(disk.state, StorageState::Ready | StorageState::Full);
            ([("disk", disk.config.name.to_string())], f64::from(u8::from(is_ready)))
        });
        encode_gauges(encoder, "suimon_disk_up", "Whether it is as desired", up)?;
        let working = self.disks.iter().map(|disk| {
            let is_working = disk.state == StorageState::Working;
            ([("disk", disk.config.name.to_string())], f64::from(u8::from(is_working)))
        });
        let help = "Whether it is out of service while an operation works on its file";
        encode_gauges(encoder, "suimon_disk_working", help, working)?;
        let away = self.disks.iter().map(|disk| {
            let is_away = disk.state == StorageState::Away;
            ([("disk", disk.config.name.to_string())], f64::from(u8::from(is_away)))
        });
        let help = "Whether another node has its file, which its VM goes to or comes from";
        encode_gauges(encoder, "suimon_disk_away", help, away)?;
        let full = self.disks.iter().map(|disk| {
            let is_full = f64::from(u8::from(disk.full.is_some()));
            ([("disk", disk.config.name.to_string())], is_full)
        });
        let help = "Whether its store has no space for its requests";
        encode_gauges(encoder, "suimon_disk_full", help, full)?;
        let queued = self.disks.iter().map(|disk| {
            #[allow(clippy::cast_precision_loss, reason = "a gauge is floating point")]
            let queued = disk.full.map_or(0.0, |full| full.queued_requests as f64);
            ([("disk", disk.config.name.to_string())], queued)
        });
        let help = "Requests that are queued until its store has space";
        encode_gauges(encoder, "suimon_disk_full_queued_requests", help, queued)?;
        for metric in REQUEST_METRICS {
            self.encode_requests(encoder, metric)?;
        }
        self.encode_latencies(encoder)?;
        for (name, help, value) in FLOW_METRICS {
            let flows = self.disks.iter().filter_map(|disk| {
                let flow = disk.qos.as_ref()?;
                #[allow(clippy::cast_precision_loss, reason = "a gauge is floating point")]
                let value = value(&flow.last_5_s) as f64;
                Some(([("disk", disk.config.name.to_string())], value))
            });
            encode_gauges(encoder, name, help, flows)?;
        }
        self.encode_limits(encoder)
    }

    /// Shares of time by limiting factor.
    fn encode_limits(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let flows = self.disks.iter().filter_map(|disk| disk.qos.as_ref());
        let shares = flows.flat_map(|flow| {
            flow.last_5_s.limited_by.iter().map(|share| {
                let labels =
                    [("disk", flow.disk.to_string()), ("factor", share.factor.to_string())];
                (labels, f64::from(share.share_ppm) / 1e6)
            })
        });
        let help = "Share of the last 5 s by what limited the disk";
        encode_gauges(encoder, "suimon_disk_limited_ratio", help, shares)
    }

    fn encode_requests(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help, value): RequestMetric,
    ) -> fmt::Result {
        if self.disks.is_empty() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for disk in &self.disks {
            for (kind, counters) in kinds(&disk.counters) {
                let labels = [("disk", disk.config.name.as_str()), ("operation", kind)];
                ConstCounter::new(value(counters)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_latencies(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let of_disk = |disk: &'_ DiskStatus| {
            let name = disk.config.name.to_string();
            let mut series = Vec::new();
            for (kind, counters) in kinds(&disk.counters) {
                // What never was has taken no time.
                for (quantile, value) in QUANTILES.iter().filter(|_| counters.requests > 0) {
                    let labels = [
                        ("disk", name.clone()),
                        ("operation", kind.to_owned()),
                        ("quantile", (*quantile).to_owned()),
                    ];
                    #[allow(clippy::cast_precision_loss, reason = "a gauge is floating point")]
                    series.push((labels, value(counters) as f64 / 1e9));
                }
            }
            series
        };
        let help = "From when a request was seen to its answer, since the disk was opened";
        let series = self.disks.iter().flat_map(of_disk);
        encode_gauges(encoder, "suimon_disk_latency_seconds", help, series)
    }
}

const fn kinds(counters: &DiskCounters) -> [(&'static str, &DiskRequestCounters); 4] {
    [
        ("read", &counters.reads),
        ("write", &counters.writes),
        ("flush", &counters.flushes),
        ("discard", &counters.discards),
    ]
}
