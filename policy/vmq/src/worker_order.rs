//! Permitted workers and their order of use.

use std::collections::{BTreeMap, BTreeSet};

use suimon_quantity::WorkerId;

use crate::{VmqSpec, VmqSpecError, WorkerSpec};

/// Returns the workers that `spec` permits, in the order in which they come into use: the base
/// worker; one thread of each core before siblings; the base worker's NUMA node before others;
/// lower numbers before higher.
///
/// # Errors
///
/// The contradiction in the configuration, with accepted values.
pub(crate) fn worker_order(
    spec: &VmqSpec,
    workers: &[WorkerSpec],
) -> Result<Vec<WorkerId>, VmqSpecError> {
    let mut sorted: Vec<WorkerSpec> = workers.to_vec();
    sorted.sort_by_key(|worker| worker.number);
    let duplicate = sorted
        .iter()
        .zip(sorted.iter().skip(1))
        .find(|(worker, next)| worker.number == next.number);
    if let Some((worker, _)) = duplicate {
        return Err(VmqSpecError::DuplicateWorker(worker.number));
    }
    let on_node = on_node(spec, &sorted)?;
    let base = base(spec, &sorted, &on_node)?;
    if let Some(highest) = spec.max_worker_number {
        if highest < base.number {
            return Err(match spec.base_worker {
                Some(base) => VmqSpecError::HighestBelowBase { highest, base },
                None => VmqSpecError::NoPermittedWorker { highest, lowest: base.number },
            });
        }
    }
    let highest = spec.max_worker_number.unwrap_or(WorkerId(u16::MAX));
    // Ascending from the base worker, so that it is the first thread of its core.
    let permitted =
        on_node.iter().filter(|worker| (base.number..=highest).contains(&worker.number)).copied();
    let mut threads_of_core: BTreeMap<u32, usize> = BTreeMap::new();
    let mut keyed: Vec<_> = permitted
        .map(|worker| {
            let threads = threads_of_core.entry(worker.core).or_default();
            *threads += 1;
            let is_foreign = worker.numa_node != base.numa_node;
            (*threads, is_foreign, worker.number)
        })
        .collect();
    if spec.max_workers == 0 {
        return Err(VmqSpecError::MaxWorkers { permitted: keyed.len() });
    }
    keyed.sort_unstable();
    Ok(keyed.into_iter().map(|(_, _, number)| number).collect())
}

fn on_node(spec: &VmqSpec, workers: &[WorkerSpec]) -> Result<Vec<WorkerSpec>, VmqSpecError> {
    let Some(node) = spec.numa_node else { return Ok(workers.to_vec()) };
    let on_node: Vec<WorkerSpec> =
        workers.iter().filter(|worker| worker.numa_node == node).copied().collect();
    if on_node.is_empty() && !workers.is_empty() {
        let nodes: BTreeSet<u16> = workers.iter().map(|worker| worker.numa_node).collect();
        return Err(VmqSpecError::UnknownNumaNode {
            numa_node: node,
            existing_nodes: nodes.into_iter().collect(),
        });
    }
    Ok(on_node)
}

fn base(
    spec: &VmqSpec,
    workers: &[WorkerSpec],
    on_node: &[WorkerSpec],
) -> Result<WorkerSpec, VmqSpecError> {
    let Some(base) = spec.base_worker else {
        return on_node.first().copied().ok_or(VmqSpecError::NoWorker);
    };
    if let Some(worker) = on_node.iter().find(|worker| worker.number == base) {
        return Ok(*worker);
    }
    let numbers = |specs: &[WorkerSpec]| specs.iter().map(|worker| worker.number).collect();
    if workers.is_empty() {
        return Err(VmqSpecError::NoWorker);
    }
    match spec.numa_node {
        Some(node) if workers.iter().any(|worker| worker.number == base) => {
            Err(VmqSpecError::BaseWorkerOnOtherNumaNode {
                base,
                numa_node: node,
                workers_on_node: numbers(on_node),
            })
        }
        _ => Err(VmqSpecError::UnknownBase { base, existing_workers: numbers(workers) }),
    }
}

#[cfg(test)]
#[path = "worker_order_tests.rs"]
mod tests;
