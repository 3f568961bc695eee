//! Results of measurements as API types and texts.

use std::io;

use suimon_contract::{
    ApiError, ErrorCode, Name, StoreCapacity, StoreConfig, StoreMeasurement, StorePattern,
    StorePatternResult,
};
use suimon_image_files::DiskFault;
use suimon_ports::{StoreFault, StoreFileError};
use suimon_quantity::CountedNoun;
use suimon_storage::measure::{MeasureError, MeasurementResult, Pattern};
use suimon_storage_qos::MINIMUMS_PERCENT_MAX;

use super::opening::errors::fault_code;
use crate::shared::Shared;

/// Converts the result of a measurement to the API type.
pub(super) fn to_measurement(
    shared: &Shared,
    store: &StoreConfig,
    seconds: u64,
    measured: &MeasurementResult,
) -> StoreMeasurement {
    let patterns = measured.results.iter().map(|figure| StorePatternResult {
        pattern: match figure.pattern {
            Pattern::Read => StorePattern::RandomRead,
            Pattern::Write => StorePattern::RandomWrite,
            Pattern::Mixed => StorePattern::RandomMixed,
        },
        iops: figure.iops,
        depth: figure.depth,
        latency_ns_p50: figure.latencies.p50_ns,
        latency_ns_p99: figure.latencies.p99_ns,
    });
    StoreMeasurement {
        iops: measured.iops(),
        measured_unix_ms: (shared.clock)(),
        seconds,
        pattern_results: patterns.collect(),
        file_bytes: measured.file_bytes,
        is_direct_io: measured.is_direct,
        other_load_iops: shared
            .store(store.name.as_str())
            .map_or(0, |store_status| store_status.delivered_iops),
    }
}

/// Returns the lines of a measurement's report.
pub(super) fn report_lines(store: &StoreConfig, measurement: &StoreMeasurement) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for figure in &measurement.pattern_results {
        lines.push(format!(
            "{}: {} IOPS with {} in flight; median latency {} µs, 99th percentile {} µs",
            figure.pattern.display_name(),
            figure.iops,
            CountedNoun::new(figure.depth, "request"),
            figure.latency_ns_p50 / 1000,
            figure.latency_ns_p99 / 1000
        ));
    }
    if measurement.pattern_results.len() == 1 {
        lines.push(
            "block devices are measured without writes, so the write latency is unknown".into(),
        );
    }
    if !measurement.is_direct_io {
        lines.push(
            "requests went through the page cache, because the store does not support direct I/O"
                .into(),
        );
    }
    if measurement.other_load_iops > 0 {
        lines.push(format!(
            "disks of the store used {} IOPS during the measurement: the results are what they \
             left",
            measurement.other_load_iops
        ));
    }
    let permitted_iops = u128::from(measurement.iops) * u128::from(MINIMUMS_PERCENT_MAX) / 100;
    lines.push(format!(
        "the capacity of the store is {} IOPS, the lowest of these results; minimums of up to \
         {permitted_iops} IOPS are permitted",
        measurement.iops
    ));
    if store.capacity_iops != Some(StoreCapacity::MEASURED) {
        lines.push(format!(
            "this capacity is not used yet; use it with `suimon store set {} --capacity-iops \
             measure`",
            store.name
        ));
    }
    lines
}

pub(super) fn measure_error(store: &Name, error: &MeasureError) -> ApiError {
    let code = match error {
        MeasureError::Store(StoreFileError { fault, .. }) => store_code(fault),
        MeasureError::RemoveOldFile(worker_end) => match worker_end.fault.as_ref() {
            DiskFault::Store(fault) => store_code(fault),
            _ => ErrorCode::HostError,
        },
        _ => ErrorCode::HostError,
    };
    let hint = match code {
        ErrorCode::PermissionDenied => ": a measurement writes to a file of its own in the store",
        _ => "",
    };
    ApiError::new(code, format!("{error}{hint}")).with_resource(format!("store/{store}"))
}

fn store_code(fault: &StoreFault) -> ErrorCode {
    match fault {
        StoreFault::System(error)
            if matches!(
                error.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ) =>
        {
            ErrorCode::PermissionDenied
        }
        other => fault_code(other),
    }
}
