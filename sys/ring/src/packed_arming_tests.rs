//! Tests that no interleaving of device and driver loses a notification in a packed ring. The
//! device's side is the code under test; the driver's side follows virtio 1.3, sections 2.8.10 and
//! 2.8.21.

use super::*;
use crate::interleaving::{CELLS, SimulatedCpu, check};

/// Memory cell that is 1 if the descriptor at the device's position is available.
const AVAILABLE: usize = 0;
const DEVICE_EVENT: usize = 1;
/// Memory cell that is 1 if the descriptor at the driver's position was used.
const USED: usize = 2;
const DRIVER_EVENT: usize = 3;

const SIZE: u16 = 8;
/// Position of the last descriptor of the ring.
const START: RingPosition = RingPosition { index: SIZE - 1, wrap_counter: true };

impl PackedNotificationFields for SimulatedCpu {
    fn is_available(&self, position: RingPosition) -> bool {
        assert_eq!(position, START);
        self.load(AVAILABLE) != 0
    }
    fn store_device_event(&self, event: u32) {
        self.store(DEVICE_EVENT, event);
    }
    fn driver_event(&self) -> u32 {
        self.load(DRIVER_EVENT)
    }
    fn full_barrier(&self) {
        self.barrier();
    }
}

/// Returns the initial memory: every descriptor is consumed, and both notifications are suppressed.
fn parked() -> [u32; CELLS] {
    let mut memory = [0; CELLS];
    memory[DEVICE_EVENT] = event(0, DISABLE);
    memory[DRIVER_EVENT] = event(0, DISABLE);
    memory
}

/// Makes one descriptor available, and kicks if the device requests it. Returns true if it kicked.
fn driver_offers(driver: &SimulatedCpu) -> bool {
    driver.store(AVAILABLE, 1);
    driver.barrier();
    let event = driver.load(DEVICE_EVENT);
    match (event >> 16) as u16 {
        ENABLE => true,
        AT_POSITION => event as u16 == START.number(),
        _ => false,
    }
}

fn device_arms<const EVENT_IDX: bool>(device: &SimulatedCpu) -> bool {
    arm(device, EVENT_IDX, START) == ArmResult::Armed
}

/// Returns true if the device sleeps although a descriptor is available and no kick is pending.
fn loses_kick(armed: bool, kicked: bool) -> bool {
    armed && !kicked
}

/// Requests an interrupt, and sleeps if no descriptor was used. Returns true if it sleeps.
fn driver_sleeps<const EVENT_IDX: bool>(driver: &SimulatedCpu) -> bool {
    let flags = if EVENT_IDX { AT_POSITION } else { ENABLE };
    driver.store(DRIVER_EVENT, event(START.number(), flags));
    driver.barrier();
    driver.load(USED) == 0
}

fn device_uses<const EVENT_IDX: bool>(device: &SimulatedCpu) -> bool {
    device.store(USED, 1);
    let returned = UsedAdvance {
        used_position: START.advanced_by(1, SIZE),
        descriptor_count: 1,
        is_first: false,
    };
    requires_interrupt(device, EVENT_IDX, SIZE, returned)
}

fn loses_interrupt(interrupted: bool, sleeps: bool) -> bool {
    sleeps && !interrupted
}

#[test]
fn no_interleaving_loses_a_kick() {
    check(parked(), device_arms::<true>, driver_offers, loses_kick);
    check(parked(), device_arms::<false>, driver_offers, loses_kick);
}

#[test]
fn no_interleaving_loses_an_interrupt() {
    check(parked(), device_uses::<true>, driver_sleeps::<true>, loses_interrupt);
    check(parked(), device_uses::<false>, driver_sleeps::<false>, loses_interrupt);
}

/// Event suppression structure of the driver with a constant value.
struct Still(u32);

impl PackedNotificationFields for Still {
    fn is_available(&self, _place: RingPosition) -> bool {
        false
    }
    fn store_device_event(&self, _event: u32) {}
    fn driver_event(&self) -> u32 {
        self.0
    }
    fn full_barrier(&self) {}
}

/// Returns true if `event` is one of the positions from `from` (inclusive) to `to` (exclusive).
fn passes(size: u16, from: RingPosition, to: RingPosition, event: RingPosition) -> bool {
    let mut position = from;
    while position != to {
        if position == event {
            return true;
        }
        position = position.advanced_by(1, size);
    }
    false
}

#[test]
fn passing_is_judged_at_every_position_of_small_rings() {
    for size in 1..9_u16 {
        let positions =
            || (0..2 * size).map(|n| RingPosition { index: n % size, wrap_counter: n < size });
        for from in positions() {
            for descriptors in 1..=size {
                let used = from.advanced_by(descriptors, size);
                let returned = UsedAdvance {
                    used_position: used,
                    descriptor_count: descriptors,
                    is_first: false,
                };
                for position in positions() {
                    let cells = Still(event(position.number(), AT_POSITION));
                    let is_required = requires_interrupt(&cells, true, size, returned);
                    let expected = passes(size, from, used, position);
                    assert_eq!(is_required, expected, "{size}: {from:?} to {used:?}, {position:?}");
                }
            }
        }
    }
}

#[test]
fn invalid_positions_and_flags_are_tolerated() {
    for event in [u32::MAX, 0x0002_7fff, 0x0002_ffff, 0x0003_0000, 0xfffd_0000] {
        for descriptors in [1, 7, 8] {
            let used = RingPosition { index: 3, wrap_counter: true };
            let returned =
                UsedAdvance { used_position: used, descriptor_count: descriptors, is_first: false };
            let _ = requires_interrupt(&Still(event), true, SIZE, returned);
        }
    }
}

#[test]
fn places_go_around() {
    let position_at = |index, wrap| RingPosition { index, wrap_counter: wrap };
    assert_eq!(position_at(3, true).advanced_by(4, 8), position_at(7, true));
    assert_eq!(position_at(3, true).advanced_by(5, 8), position_at(0, false));
    assert_eq!(position_at(0, false).advanced_by(8, 8), position_at(0, true));
    assert_eq!(RingPosition::from_number(0x8005), position_at(5, true));
    assert_eq!(position_at(5, true).number(), 0x8005);
    assert_eq!(position_at(5, false).number(), 5);
}
