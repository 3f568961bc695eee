//! Every interleaving of device and driver, on a machine whose processors keep
//! their stores in a buffer for a while (as x86 does; it is the reordering that
//! loses wake-ups). The device's side is the code under test; the driver's side
//! is written after virtio 1.3, section 2.7.13.
//!
//! A side is run up to its next memory access by running it from the start again:
//! accesses already made are answered from a log, the next one is carried out,
//! the one after it unwinds.

use std::cell::{Cell as Slot, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::*;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    AvailIdx,
    AvailEvent,
    KicksWanted,
    UsedIdx,
    UsedEvent,
    InterruptsWanted,
}

/// Memory, and each processor's stores that are not in it yet.
#[derive(Clone)]
struct Machine {
    memory: [u16; 6],
    buffers: [VecDeque<(Cell, u16)>; 2],
}

impl Machine {
    fn drain_one(&mut self, processor: usize) {
        if let Some((cell, value)) = self.buffers[processor].pop_front() {
            self.memory[cell as usize] = value;
        }
    }
}

/// One processor while it runs its side.
struct Processor {
    machine: RefCell<Machine>,
    number: usize,
    has_barriers: bool,
    log: RefCell<Vec<u16>>,
    at: Slot<usize>,
    may_go_on: Slot<bool>,
}

struct Paused;

impl Processor {
    fn access(&self, act: impl FnOnce(&mut Machine) -> u16) -> u16 {
        let at = self.at.replace(self.at.get() + 1);
        if let Some(value) = self.log.borrow().get(at) {
            return *value;
        }
        if !self.may_go_on.replace(false) {
            resume_unwind(Box::new(Paused));
        }
        let value = act(&mut self.machine.borrow_mut());
        self.log.borrow_mut().push(value);
        value
    }

    fn store(&self, cell: Cell, value: u16) {
        self.access(|machine| {
            machine.buffers[self.number].push_back((cell, value));
            0
        });
    }

    fn load(&self, cell: Cell) -> u16 {
        self.access(|machine| {
            let own = machine.buffers[self.number].iter().rev().find(|(at, _)| *at == cell);
            own.map_or(machine.memory[cell as usize], |(_, value)| *value)
        })
    }

    fn barrier(&self) {
        if self.has_barriers {
            self.access(|machine| {
                while !machine.buffers[self.number].is_empty() {
                    machine.drain_one(self.number);
                }
                0
            });
        }
    }
}

const DEVICE: usize = 0;
const DRIVER: usize = 1;

impl NotifyCells for Processor {
    fn avail_idx(&self) -> u16 {
        self.load(Cell::AvailIdx)
    }
    fn store_avail_event(&self, index: u16) {
        self.store(Cell::AvailEvent, index);
    }
    fn store_kicks_wanted(&self, wanted: bool) {
        self.store(Cell::KicksWanted, u16::from(wanted));
    }
    fn used_event(&self) -> u16 {
        self.load(Cell::UsedEvent)
    }
    fn interrupts_wanted(&self) -> bool {
        self.load(Cell::InterruptsWanted) != 0
    }
    fn full_barrier(&self) {
        self.barrier();
    }
}

/// One side: what it runs, how far it is, and its result when it is done.
#[derive(Clone)]
struct Side {
    run: fn(&Processor) -> bool,
    number: usize,
    has_barriers: bool,
    log: Vec<u16>,
    result: Option<bool>,
}

impl Side {
    /// Makes the next access.
    fn step(&mut self, machine: &mut Machine) {
        let processor = Processor {
            machine: RefCell::new(machine.clone()),
            number: self.number,
            has_barriers: self.has_barriers,
            log: RefCell::new(core::mem::take(&mut self.log)),
            at: Slot::new(0),
            may_go_on: Slot::new(true),
        };
        match catch_unwind(AssertUnwindSafe(|| (self.run)(&processor))) {
            Ok(result) => self.result = Some(result),
            Err(payload) if payload.is::<Paused>() => {}
            Err(payload) => resume_unwind(payload),
        }
        *machine = processor.machine.into_inner();
        self.log = processor.log.into_inner();
    }
}

/// What was found over all interleavings.
#[derive(Debug, Default)]
struct Found {
    executions: usize,
    losses: usize,
}

fn search(
    machine: &Machine,
    sides: &[Side; 2],
    is_loss: fn(bool, bool) -> bool,
    found: &mut Found,
) {
    if let [Some(device), Some(driver)] = [sides[0].result, sides[1].result] {
        found.executions += 1;
        found.losses += usize::from(is_loss(device, driver));
        return;
    }
    for number in [DEVICE, DRIVER] {
        if sides[number].result.is_none() {
            let (mut machine, mut sides) = (machine.clone(), sides.clone());
            sides[number].step(&mut machine);
            search(&machine, &sides, is_loss, found);
        }
        if !machine.buffers[number].is_empty() {
            let mut machine = machine.clone();
            machine.drain_one(number);
            search(&machine, sides, is_loss, found);
        }
    }
}

/// Runs `device` and `driver` in every interleaving, each with a store buffer
/// that is written back at any moment.
fn explore(
    has_barriers: bool,
    device: fn(&Processor) -> bool,
    driver: fn(&Processor) -> bool,
    is_loss: fn(bool, bool) -> bool,
) -> Found {
    // Parked, everything consumed, nobody wants to hear of anything.
    let parked = START.wrapping_add(PARKED_AHEAD);
    let machine = Machine {
        memory: [START, parked, 0, START, parked, 0],
        buffers: [VecDeque::new(), VecDeque::new()],
    };
    let side = |run, number, has_barriers| Side {
        run,
        number,
        has_barriers,
        log: Vec::new(),
        result: None,
    };
    let sides = [side(device, DEVICE, has_barriers), side(driver, DRIVER, true)];
    let mut found = Found::default();
    search(&machine, &sides, is_loss, &mut found);
    found
}

const START: u16 = 0xffff;

/// The driver makes one entry available and kicks if it has to.
fn driver_publishes<const EVENT_IDX: bool>(driver: &Processor) -> bool {
    driver.store(Cell::AvailIdx, START.wrapping_add(1));
    driver.barrier();
    if EVENT_IDX {
        let event = driver.load(Cell::AvailEvent);
        passes(event, START.wrapping_add(1), START)
    } else {
        driver.load(Cell::KicksWanted) != 0
    }
}

fn device_arms<const EVENT_IDX: bool>(device: &Processor) -> bool {
    arm(device, EVENT_IDX, START) == Wakeup::Armed
}

/// Asleep with an entry waiting and no kick under way: nobody would ever come.
fn loses_kick(armed: bool, kicked: bool) -> bool {
    armed && !kicked
}

/// The driver asks for an interrupt and goes to sleep if nothing was used.
fn driver_sleeps<const EVENT_IDX: bool>(driver: &Processor) -> bool {
    if EVENT_IDX {
        driver.store(Cell::UsedEvent, START);
    } else {
        driver.store(Cell::InterruptsWanted, 1);
    }
    driver.barrier();
    driver.load(Cell::UsedIdx) == START
}

fn device_uses<const EVENT_IDX: bool>(device: &Processor) -> bool {
    device.store(Cell::UsedIdx, START.wrapping_add(1));
    wants_interrupt(device, EVENT_IDX, Some(START), START.wrapping_add(1))
}

fn loses_interrupt(interrupted: bool, sleeps: bool) -> bool {
    sleeps && !interrupted
}

/// A kick that a device without barriers loses, a device with them does not.
fn check(
    device: fn(&Processor) -> bool,
    driver: fn(&Processor) -> bool,
    is_loss: fn(bool, bool) -> bool,
) {
    let found = explore(true, device, driver, is_loss);
    assert!(found.executions > 50, "{found:?}");
    assert_eq!(found.losses, 0, "{found:?}");
    let without = explore(false, device, driver, is_loss);
    assert!(without.losses > 0, "the search is too weak to prove anything: {without:?}");
}

#[test]
fn no_interleaving_loses_a_kick() {
    check(device_arms::<true>, driver_publishes::<true>, loses_kick);
    check(device_arms::<false>, driver_publishes::<false>, loses_kick);
}

#[test]
fn no_interleaving_loses_an_interrupt() {
    check(device_uses::<true>, driver_sleeps::<true>, loses_interrupt);
    check(device_uses::<false>, driver_sleeps::<false>, loses_interrupt);
}

#[test]
fn a_parked_index_is_renewed_before_the_driver_reaches_it() {
    for next in [0_u16, 1, 0x7fff, 0x8000, 0xffff] {
        let parked = next.wrapping_add(PARKED_AHEAD);
        assert!(!is_park_stale(parked, next));
        assert!(!is_park_stale(parked, next.wrapping_add(PARKED_NEAR)));
        assert!(is_park_stale(parked, next.wrapping_add(PARKED_NEAR + 1)));
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
