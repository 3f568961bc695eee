//! Tests that no interleaving of device and driver loses a notification. The device's side is the
//! code under test; the driver's side follows virtio 1.3, section 2.7.13.

use super::*;
use crate::interleaving::{CELLS, SimulatedCpu, check};

const AVAIL_IDX: usize = 0;
const AVAIL_EVENT: usize = 1;
const KICKS_REQUESTED: usize = 2;
const USED_IDX: usize = 3;
const USED_EVENT: usize = 4;
const INTERRUPTS_REQUESTED: usize = 5;

/// Returns the initial memory: every entry is consumed, and both notifications are suppressed.
fn parked() -> [u32; CELLS] {
    let (start, parked) = (u32::from(START), u32::from(START.wrapping_add(PARKED_DISTANCE)));
    [start, parked, 0, start, parked, 0]
}

impl NotificationFields for SimulatedCpu {
    fn avail_idx(&self) -> u16 {
        self.load(AVAIL_IDX) as u16
    }
    fn store_avail_event(&self, index: u16) {
        self.store(AVAIL_EVENT, u32::from(index));
    }
    fn set_kicks_enabled(&self, enabled: bool) {
        self.store(KICKS_REQUESTED, u32::from(enabled));
    }
    fn used_event(&self) -> u16 {
        self.load(USED_EVENT) as u16
    }
    fn interrupts_enabled(&self) -> bool {
        self.load(INTERRUPTS_REQUESTED) != 0
    }
    fn full_barrier(&self) {
        self.barrier();
    }
}

const START: u16 = 0xffff;

/// Makes one entry available, and kicks if the device requests it. Returns true if it kicked.
fn driver_publishes<const EVENT_IDX: bool>(driver: &SimulatedCpu) -> bool {
    driver.store(AVAIL_IDX, u32::from(START.wrapping_add(1)));
    driver.barrier();
    if EVENT_IDX {
        let event = driver.load(AVAIL_EVENT) as u16;
        passes(event, START.wrapping_add(1), START)
    } else {
        driver.load(KICKS_REQUESTED) != 0
    }
}

fn device_arms<const EVENT_IDX: bool>(device: &SimulatedCpu) -> bool {
    arm(device, EVENT_IDX, START) == ArmResult::Armed
}

/// Returns true if the device sleeps although an entry is available and no kick is pending.
fn loses_kick(armed: bool, kicked: bool) -> bool {
    armed && !kicked
}

/// Requests an interrupt, and sleeps if no entry was used. Returns true if it sleeps.
fn driver_sleeps<const EVENT_IDX: bool>(driver: &SimulatedCpu) -> bool {
    if EVENT_IDX {
        driver.store(USED_EVENT, u32::from(START));
    } else {
        driver.store(INTERRUPTS_REQUESTED, 1);
    }
    driver.barrier();
    driver.load(USED_IDX) == u32::from(START)
}

fn device_uses<const EVENT_IDX: bool>(device: &SimulatedCpu) -> bool {
    device.store(USED_IDX, u32::from(START.wrapping_add(1)));
    requires_interrupt(device, EVENT_IDX, Some(START), START.wrapping_add(1))
}

fn loses_interrupt(interrupted: bool, sleeps: bool) -> bool {
    sleeps && !interrupted
}

#[test]
fn no_interleaving_loses_a_kick() {
    check(parked(), device_arms::<true>, driver_publishes::<true>, loses_kick);
    check(parked(), device_arms::<false>, driver_publishes::<false>, loses_kick);
}

#[test]
fn no_interleaving_loses_an_interrupt() {
    check(parked(), device_uses::<true>, driver_sleeps::<true>, loses_interrupt);
    check(parked(), device_uses::<false>, driver_sleeps::<false>, loses_interrupt);
}

/// Publishes one used entry and then arms the ring, as a device that completes a request while it
/// is idle.
fn device_completes_and_arms<const EVENT_IDX: bool, const IS_ARMED: bool>(
    device: &SimulatedCpu,
) -> bool {
    let interrupts = device_uses::<EVENT_IDX>(device);
    let armed = device_arms::<EVENT_IDX>(device);
    if IS_ARMED { armed } else { interrupts }
}

#[test]
fn a_device_that_completes_and_arms_loses_no_kick_and_no_interrupt() {
    check(parked(), device_completes_and_arms::<true, true>, driver_publishes::<true>, loses_kick);
    check(
        parked(),
        device_completes_and_arms::<false, true>,
        driver_publishes::<false>,
        loses_kick,
    );
    check(
        parked(),
        device_completes_and_arms::<true, false>,
        driver_sleeps::<true>,
        loses_interrupt,
    );
    check(
        parked(),
        device_completes_and_arms::<false, false>,
        driver_sleeps::<false>,
        loses_interrupt,
    );
}

/// Publishes two used entries, one after the other. Returns true if the second one interrupts.
fn device_uses_twice(device: &SimulatedCpu) -> bool {
    let (first, second) = (START.wrapping_add(1), START.wrapping_add(2));
    device.store(USED_IDX, u32::from(first));
    let _ = requires_interrupt(device, true, Some(START), first);
    device.store(USED_IDX, u32::from(second));
    requires_interrupt(device, true, Some(first), second)
}

/// Sleeps after it has processed the first of two used entries, until the second one. Returns true
/// if it sleeps.
fn driver_sleeps_between(driver: &SimulatedCpu) -> bool {
    let observed = driver.load(USED_IDX);
    driver.store(USED_EVENT, observed);
    driver.barrier();
    observed == u32::from(START.wrapping_add(1)) && driver.load(USED_IDX) == observed
}

#[test]
fn no_interleaving_loses_the_interrupt_of_a_later_completion() {
    check(parked(), device_uses_twice, driver_sleeps_between, loses_interrupt);
}

#[test]
fn a_parked_index_is_renewed_before_the_driver_reaches_it() {
    for next in [0_u16, 1, 0x7fff, 0x8000, 0xffff] {
        let parked = next.wrapping_add(PARKED_DISTANCE);
        assert!(!requires_repark(parked, next));
        assert!(!requires_repark(parked, next.wrapping_add(REPARK_DISTANCE)));
        assert!(requires_repark(parked, next.wrapping_add(REPARK_DISTANCE + 1)));
    }
}

#[test]
fn passing_is_judged_across_the_wrap() {
    assert!(passes(5, 6, 5));
    assert!(!passes(5, 5, 5));
    assert!(!passes(6, 6, 5));
    assert!(passes(0xffff, 0, 0xffff));
    assert!(passes(0xffff, 3, 0xfff0));
    assert!(!passes(3, 3, 0xfff0));
}
