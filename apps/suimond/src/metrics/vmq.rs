//! Metrics of queues, and of VMQ: which processor works off which queue.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use suimon_contract::VmqQueueStatus;

use super::{Readings, encode_gauges, ratio};

/// What one gauge of a queue is called, and what it shows.
type QueueMetric = (&'static str, &'static str, fn(&VmqQueueStatus) -> f64);

const QUEUE_METRICS: [QueueMetric; 2] = [
    ("suimon_vmq_queue_processor", "Number of the processor that works it off", |queue| {
        f64::from(queue.processor)
    }),
    ("suimon_vmq_queue_load_ratio", "What it takes of that processor's time", |queue| {
        ratio(queue.load_ppm)
    }),
];

impl Readings {
    pub(super) fn encode_vmq(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_moves(encoder)?;
        for (name, help, value) in QUEUE_METRICS {
            let queues = self.vmqs.iter().flat_map(|vmq| {
                vmq.queues.iter().map(move |queue| {
                    let labels = [
                        ("uplink", vmq.uplink.to_string()),
                        ("nic", queue.nic.to_string()),
                        ("queue", queue.queue.clone()),
                    ];
                    (labels, value(queue))
                })
            });
            encode_gauges(encoder, name, help, queues)?;
        }
        let permitted = self.vmqs.iter().flat_map(|vmq| {
            vmq.processors.iter().filter(|processor| processor.permitted).map(move |processor| {
                let labels = [
                    ("uplink", vmq.uplink.to_string()),
                    ("processor", processor.processor.to_string()),
                ];
                (labels, f64::from(processor.queues))
            })
        });
        let help = "Queues that a permitted processor works off; with none it is parked";
        encode_gauges(encoder, "suimon_vmq_processor_queues", help, permitted)
    }

    /// Of all queues, whoever moves them.
    fn encode_moves(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if self.queues.is_empty() {
            return Ok(());
        }
        let (name, help) = ("suimon_queue_moves", "Times it was handed over to another processor");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for queue in &self.queues {
            let labels = [("queue", queue.id.as_str())];
            ConstCounter::new(queue.moves).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
