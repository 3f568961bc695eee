use std::path::PathBuf;

use suimon_ports::{OffloadSwitches, VhostUserMode, VhostUserPromise, VhostUserSpec};

use super::*;

fn port() -> Port {
    let spec = PortSpec::VhostUser(VhostUserSpec {
        socket: PathBuf::from("/run/a.sock"),
        mode: VhostUserMode::Server,
        queue_pairs: 1,
        mac: None,
        mtu: 1500,
        offload: OffloadSwitches::default(),
        promise: VhostUserPromise::default(),
    });
    Port::new(PortKey::Nic("a".parse().unwrap()), PortId(1), spec)
}

#[test]
fn pauses_double_up_to_thirty_times_and_start_anew_after_calm() {
    let port = port();
    let first = Duration::from_secs(1);
    let mut now = Instant::now();
    let mut pauses = Vec::new();
    for _ in 0..40 {
        let mut state = port.lock();
        state.fail(now, first, "no".to_owned());
        let at = state.failure.as_ref().unwrap().retry_at;
        pauses.push(at.duration_since(now).as_secs());
        now = at;
    }
    assert_eq!(pauses[..7], [1, 2, 4, 8, 16, 30, 30]);
    assert_eq!(pauses[39], 30);
    let mut state = port.lock();
    state.fail(now + Duration::from_secs(200), first, "no".to_owned());
    let failure = state.failure.as_ref().unwrap();
    assert_eq!(failure.retry_at, now + Duration::from_secs(201));
}

#[test]
fn a_flood_of_events_is_cut_and_counted() {
    let mut budget = EventBudget::default();
    let now = Instant::now();
    let allowed = (0..1000).filter(|_| budget.take(now).is_some()).count();
    assert_eq!(allowed, EventBudget::BURST as usize);
    assert_eq!(budget.take(now + EventBudget::REFILL), Some(1000 - 32));
    assert_eq!(budget.take(now + EventBudget::REFILL), None);
}
