//! Tests that addresses reported by the kernel path, whose frames bypass the plane, do not expire
//! in the plane's address table. The clock is virtual.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use suimon_forwarding::{AddressSighting, ForwardingPortSpec, PortRole, SwitchSpec};
use suimon_frame::MacAddr;
use suimon_ports::WorkerRuntime;
use suimon_processor_tests::{TestClockRuntime, mac};
use suimon_quantity::{PortId, SwitchId, Time};
use suimon_switch::{DataPlane, PortTopology, Topology};

const SWITCH: SwitchId = SwitchId(1);
const AGEING: Duration = Duration::from_secs(10);

fn plane(runtime: &TestClockRuntime) -> DataPlane {
    let cpu = runtime.allowed_cpus()[0];
    let plane = DataPlane::start(&[cpu], Arc::new(runtime.clone())).unwrap();
    let port = |id| PortTopology {
        spec: ForwardingPortSpec::new(PortId(id), SWITCH, PortRole::Nic),
        bandwidth: None,
        storm_limit_fps: None,
        receive_coalescing: true,
    };
    let switches = vec![SwitchSpec { ageing: AGEING, ..SwitchSpec::new(SWITCH) }];
    plane.publish(Topology { switches, ports: vec![port(0), port(1)], teams: Vec::new() }).unwrap();
    plane
}

fn heard(port: u32, seen_s: u64) -> AddressSighting {
    let mac = MacAddr::new(mac(7));
    let seen_at = Time::from_ns(seen_s * 1_000_000_000);
    AddressSighting {
        switch: SWITCH,
        vlan: None,
        mac,
        port: PortId(port),
        seen_at,
        moved_from: None,
        is_first: false,
    }
}

#[test]
fn addresses_seen_on_other_paths_stay_known_and_newer_sightings_win() {
    let clock = Arc::new(AtomicU64::new(0));
    let read = Arc::clone(&clock);
    let runtime = TestClockRuntime::new(move || Time::from_ns(read.load(Ordering::SeqCst)));
    let plane = plane(&runtime);
    let view_at = |seconds: u64, learned: Option<AddressSighting>| {
        // The worker reads the clock when it wakes, so the clock may change only while it sleeps.
        let started = Instant::now();
        while !runtime.is_sleeping() {
            assert!(started.elapsed() < Duration::from_secs(120), "the processor does not rest");
            suimon_processor_tests::sleep_briefly();
        }
        clock.store(seconds * 1_000_000_000, Ordering::SeqCst);
        plane.refresh_addresses(learned.into_iter().collect());
        let views = plane.addresses(SWITCH);
        views.first().map(|view| (view.port.0, view.age.unwrap().as_secs_f64().round() as u64))
    };
    assert_eq!(view_at(100, None), None);
    assert_eq!(view_at(100, Some(heard(0, 99))), Some((0, 1)));
    for seconds in [105, 110, 115, 120] {
        assert_eq!(view_at(seconds, Some(heard(0, seconds - 5))), Some((0, 5)));
    }
    assert_eq!(view_at(121, Some(heard(1, 110))), Some((0, 6)), "that was before");
    assert_eq!(view_at(122, Some(heard(1, 121))), Some((1, 1)), "it has moved");
    assert_eq!(view_at(123, Some(heard(9, 123))), Some((1, 2)), "there is no such port");
    assert_eq!(view_at(140, None), None, "the address was not reported again");
    plane.stop();
}
