use super::*;

/// Returns two nodes of two cores with two threads each. Numbers of siblings differ by 4, as on
/// Linux.
fn host() -> Vec<WorkerSpec> {
    (0..8u16)
        .map(|number| WorkerSpec {
            number: WorkerId(number),
            core: u32::from(number % 4),
            numa_node: number % 4 / 2,
        })
        .collect()
}

fn numbers(spec: &VmqSpec) -> Result<Vec<u16>, String> {
    worker_order(spec, &host())
        .map(|order| order.into_iter().map(|number| number.0).collect())
        .map_err(|error| error.to_string())
}

#[test]
fn the_base_comes_first_and_siblings_last() {
    let id = |number| Some(WorkerId(number));
    let any = VmqSpec::default();
    assert_eq!(numbers(&any).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    let from_3 = VmqSpec { base_worker: id(3), ..any.clone() };
    // From 3 on, 4, 5 and 6 are the only threads of their cores; 7 is the sibling of 3.
    assert_eq!(numbers(&from_3).unwrap(), [3, 6, 4, 5, 7]);
    let node_1 = VmqSpec { numa_node: Some(1), ..any.clone() };
    assert_eq!(numbers(&node_1).unwrap(), [2, 3, 6, 7]);
    let to_3 = VmqSpec { max_worker_number: id(3), base_worker: id(1), ..any };
    assert_eq!(numbers(&to_3).unwrap(), [1, 2, 3]);
}

#[test]
fn contradictions_are_reported_with_accepted_values() {
    let id = |number| Some(WorkerId(number));
    let any = VmqSpec::default();
    let cases = [
        (
            VmqSpec { base_worker: id(9), ..any.clone() },
            "base_worker 9 does not exist; set one of 0, 1, 2, 3, 4, 5, 6, 7",
        ),
        (
            VmqSpec { base_worker: id(1), numa_node: Some(1), ..any.clone() },
            "base_worker 1 is not on numa_node 1; set one of 2, 3, 6, 7",
        ),
        (
            VmqSpec { numa_node: Some(2), ..any.clone() },
            "numa_node 2 has no worker; set one of 0, 1",
        ),
        (
            VmqSpec { max_worker_number: id(1), numa_node: Some(1), ..any.clone() },
            "max_worker_number 1 leaves no permitted worker; set 2 or more",
        ),
        (
            VmqSpec { max_worker_number: id(1), base_worker: id(2), ..any.clone() },
            "max_worker_number 1 is below base_worker 2; set 2 or more",
        ),
        (
            VmqSpec { max_workers: 0, numa_node: Some(0), ..any.clone() },
            "max_workers is 0; set 1 or more (4 workers are permitted), or `enabled = false`",
        ),
    ];
    for (spec, text) in cases {
        assert_eq!(numbers(&spec).unwrap_err(), text);
    }
    assert_eq!(worker_order(&any, &[]), Err(VmqSpecError::NoWorker));
    let based = VmqSpec { base_worker: id(0), numa_node: Some(0), ..any.clone() };
    assert_eq!(worker_order(&based, &[]), Err(VmqSpecError::NoWorker));
    let duplicate = [host(), host()].concat();
    assert_eq!(worker_order(&any, &duplicate), Err(VmqSpecError::DuplicateWorker(WorkerId(0))));
}
