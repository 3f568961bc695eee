use super::*;

#[test]
fn pauses_double_up_to_thirty_times_and_restart_after_calm() {
    let mut failing = RetryState::default();
    let first = Duration::from_secs(1);
    let mut now = Instant::now();
    let mut pauses = Vec::new();
    for _ in 0..40 {
        failing.fail(now, first, "no".to_owned());
        let retry_at = failing.current_failure.as_ref().unwrap().retry_at;
        pauses.push(retry_at.duration_since(now).as_secs());
        now = retry_at;
    }
    assert_eq!(pauses[..7], [1, 2, 4, 8, 16, 30, 30]);
    assert_eq!(pauses[39], 30);
    failing.fail(now + Duration::from_secs(200), first, "no".to_owned());
    let failure = failing.current_failure.as_ref().unwrap();
    assert_eq!(failure.retry_at, now + Duration::from_secs(201));
}
