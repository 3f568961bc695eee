//! Metrics of workers, the threads of the data plane.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;
use suimon_contract::WorkerStatus;

use crate::family::{Family, Value};
use crate::readings::Readings;

/// Family of worker metrics with the function that reads its value.
type WorkerMetric = (Family, fn(&WorkerStatus) -> Value);

const LABELS: &[&str] = &["worker"];

const METRICS: [WorkerMetric; 7] = [
    (
        Family::counter(
            "suimon_worker_batches",
            "",
            LABELS,
            "Batches of frames that the worker took from queues",
        ),
        |worker| Value::Integer(worker.batches),
    ),
    (
        Family::counter(
            "suimon_worker_frames",
            "frames",
            LABELS,
            "Frames that the worker took from queues",
        ),
        |worker| Value::Integer(worker.frames),
    ),
    (
        Family::counter("suimon_worker_sleeps", "", LABELS, "Times the worker went to sleep"),
        |worker| Value::Integer(worker.sleeps),
    ),
    (
        Family::counter(
            "suimon_worker_yields",
            "",
            LABELS,
            "Times the worker suspended polling for device completions because other threads need its CPU",
        ),
        |worker| Value::Integer(worker.yields),
    ),
    (
        Family::counter(
            "suimon_worker_cpu_seconds",
            "seconds",
            LABELS,
            "CPU time that the worker used",
        ),
        |worker| Value::seconds_from_ns(worker.cpu_time_ns),
    ),
    (
        Family::counter(
            "suimon_worker_busy_seconds",
            "seconds",
            LABELS,
            "Time in which the worker did not sleep",
        ),
        |worker| Value::seconds_from_ns(worker.busy_ns),
    ),
    (Family::gauge("suimon_worker_queues", "", LABELS, "Queues that the worker owns"), |worker| {
        Value::Integer(worker.queues as u64)
    }),
];

const STAGES: Family = Family::counter(
    "suimon_worker_stage_seconds",
    "seconds",
    &["worker", "stage"],
    "Time of the worker by stage. The stages of a worker add up to all of its time",
);

pub(super) fn families() -> Vec<Family> {
    METRICS.map(|(family, _)| family).into_iter().chain([STAGES]).collect()
}

impl Readings {
    pub(super) fn encode_workers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (family, value) in METRICS {
            let series = self.workers.iter().map(|worker| ([worker.id.to_string()], value(worker)));
            family.write_if_any(encoder, series)?;
        }
        let stages = self.workers.iter().flat_map(|worker| {
            let stages = worker.stages.named_durations().into_iter();
            stages.map(|(stage, ns)| {
                ([worker.id.to_string(), stage.to_owned()], Value::seconds_from_ns(ns))
            })
        });
        STAGES.write_if_any(encoder, stages)
    }
}
