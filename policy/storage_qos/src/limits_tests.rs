use super::*;

fn iops(number: u64) -> Option<Iops> {
    Iops::new(number)
}

#[test]
fn contradictions_are_refused() {
    let fine = Limits { min_iops: iops(5), max_iops: iops(5), ..Limits::default() };
    assert_eq!(fine.check(), Ok(()));
    let burst = |iops, seconds| Some(Burst { iops: Iops::new(iops).unwrap(), seconds });
    let cases = [
        (Limits { min_iops: iops(6), ..fine }, "min_iops 6 exceeds max_iops 5"),
        (Limits { max_iops: None, burst: burst(9, 1), ..fine }, "set max_iops"),
        (Limits { burst: burst(5, 1), ..fine }, "burst_iops 5 does not exceed"),
        (Limits { burst: burst(6, 0), ..fine }, "burst_s 0"),
        (Limits { burst: burst(6, 3601), ..fine }, "burst_s 3601"),
        (Limits { max_iops: iops(IOPS_MAX + 1), ..fine }, "max_iops 1000000001"),
    ];
    for (limits, expected) in cases {
        let error = limits.check().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(Limits { burst: burst(6, 3600), ..fine }.check(), Ok(()));
}

#[test]
fn the_bound_of_a_window_has_the_burst_once() {
    let limits = Limits { max_iops: iops(1000), ..Limits::default() };
    assert_eq!(limits.operations_max(Duration::from_secs(5)), Some(5020));
    let guaranteed = Limits { min_iops: iops(900), ..limits };
    assert_eq!(guaranteed.operations_max(Duration::from_secs(5)), Some(5080));
    let burst = Some(Burst { iops: Iops::new(3000).unwrap(), seconds: 2 });
    let limits = Limits { burst, ..limits };
    assert_eq!(limits.operations_max(Duration::from_secs(1)), Some(3060));
    assert_eq!(limits.operations_max(Duration::from_secs(10)), Some(10_020 + 4000));
    assert_eq!(Limits::default().operations_max(Duration::from_secs(1)), None);
}
