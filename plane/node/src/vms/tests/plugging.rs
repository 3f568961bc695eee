//! Devices that a guest releases without a request, such as by powering off their slot.

use std::time::{Duration, Instant};

use suimon_ports::{VmDevice, VmNotice};

use super::super::records::load_vms;
use super::{VmAction, harness, patch, well};
use crate::testing::{Harness, name, wait_until};

fn release(harness: &Harness) {
    harness.vms.guest("web", VmNotice::Unplugged(VmDevice::Nic("web".to_owned())));
}

fn plugs(harness: &Harness) -> usize {
    harness.vms.commands().iter().filter(|command| command.starts_with("web plug nic web ")).count()
}

#[test]
fn a_repeatedly_released_device_is_plugged_again_with_growing_delays() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let started = Instant::now();
    for round in 1..=6 {
        release(&harness);
        wait_until("the device is plugged again", || plugs(&harness) == round);
    }
    // 20, 40, …, 640 ms.
    assert!(started.elapsed() >= Duration::from_millis(20 * 63), "{:?}", started.elapsed());
    let has_it = || harness.node.vm("web").unwrap().nics == [name("web")];
    wait_until("the device is plugged again", has_it);
}

/// Changes of the configuration do not shorten the delay.
#[test]
fn a_change_does_not_plug_a_released_device_earlier() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let started = Instant::now();
    for round in 1..=5 {
        release(&harness);
        let released =
            || harness.node.vm("web").unwrap().nics.is_empty() || plugs(&harness) >= round;
        wait_until("the device is released", released);
        patch(&harness, &format!(r#"{{"autostart": {}}}"#, round % 2 == 0));
        wait_until("the device is plugged again", || plugs(&harness) == round);
    }
    assert!(started.elapsed() >= Duration::from_millis(20 * 31), "{:?}", started.elapsed());
}

#[test]
fn the_addresses_of_plugged_nics_are_recorded() {
    let harness = harness();
    well(&harness, VmAction::Start);
    let recorded = || {
        let (_, vm) = load_vms(&*harness.store).unwrap().remove(0);
        vm.run.unwrap().macs
    };
    assert!(recorded().keys().eq([&name("web")]));
    patch(&harness, r#"{"nics": ["web", "more"]}"#);
    wait_until("two addresses are recorded", || recorded().len() == 2);
    for (nic, mac) in recorded() {
        assert_eq!(harness.node.nic(nic.as_str()).unwrap().config.mac, Some(mac));
    }
    patch(&harness, r#"{"nics": ["web"]}"#);
    harness.vms.guest("web", VmNotice::Unplugged(VmDevice::Nic("more".to_owned())));
    wait_until("one address is recorded", || recorded().keys().eq([&name("web")]));
}
