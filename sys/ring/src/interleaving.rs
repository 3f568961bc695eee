//! Exhaustive test of all interleavings of a device and a driver on a simulated machine with store
//! buffers, which reorder memory accesses as x86 does and can therefore lose notifications.
//!
//! A side is run up to its next memory access by executing it again from the start: earlier
//! accesses return logged values, the next access is executed, and the one after it unwinds.

use std::cell::{Cell as Slot, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Number of memory cells of the model.
pub(crate) const CELLS: usize = 6;

/// Memory of the simulated machine, and the stores of each CPU that are still in its store buffer.
#[derive(Clone)]
struct SimulatedMachine {
    memory: [u32; CELLS],
    buffers: [VecDeque<(usize, u32)>; 2],
}

impl SimulatedMachine {
    fn drain_one(&mut self, processor: usize) {
        if let Some((cell, value)) = self.buffers[processor].pop_front() {
            self.memory[cell] = value;
        }
    }
}

/// CPU of the simulated machine, as the code of one side uses it.
pub(crate) struct SimulatedCpu {
    machine: RefCell<SimulatedMachine>,
    number: usize,
    has_barriers: bool,
    log: RefCell<Vec<u32>>,
    at: Slot<usize>,
    may_go_on: Slot<bool>,
}

struct Paused;

impl SimulatedCpu {
    fn access(&self, act: impl FnOnce(&mut SimulatedMachine) -> u32) -> u32 {
        let index = self.at.replace(self.at.get() + 1);
        if let Some(value) = self.log.borrow().get(index) {
            return *value;
        }
        if !self.may_go_on.replace(false) {
            resume_unwind(Box::new(Paused));
        }
        let value = act(&mut self.machine.borrow_mut());
        self.log.borrow_mut().push(value);
        value
    }

    pub(crate) fn store(&self, cell: usize, value: u32) {
        self.access(|machine| {
            machine.buffers[self.number].push_back((cell, value));
            0
        });
    }

    pub(crate) fn load(&self, cell: usize) -> u32 {
        self.access(|machine| {
            let buffered =
                machine.buffers[self.number].iter().rev().find(|(address, _)| *address == cell);
            buffered.map_or(machine.memory[cell], |(_, value)| *value)
        })
    }

    pub(crate) fn barrier(&self) {
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

/// One of the two sides: its code, its progress, and its result once it has ended.
#[derive(Clone)]
struct Side {
    run: fn(&SimulatedCpu) -> bool,
    number: usize,
    has_barriers: bool,
    log: Vec<u32>,
    result: Option<bool>,
}

impl Side {
    /// Executes the next memory access.
    fn step(&mut self, machine: &mut SimulatedMachine) {
        let processor = SimulatedCpu {
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

/// Results of all interleavings: number of executions, and of lost notifications.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) executions: usize,
    pub(crate) losses: usize,
}

fn search(
    machine: &SimulatedMachine,
    sides: &[Side; 2],
    is_loss: fn(bool, bool) -> bool,
    outcome: &mut Found,
) {
    if let [Some(device), Some(driver)] = [sides[0].result, sides[1].result] {
        outcome.executions += 1;
        outcome.losses += usize::from(is_loss(device, driver));
        return;
    }
    for number in [DEVICE, DRIVER] {
        if sides[number].result.is_none() {
            let (mut machine, mut sides) = (machine.clone(), sides.clone());
            sides[number].step(&mut machine);
            search(&machine, &sides, is_loss, outcome);
        }
        if !machine.buffers[number].is_empty() {
            let mut machine = machine.clone();
            machine.drain_one(number);
            search(&machine, sides, is_loss, outcome);
        }
    }
}

/// Runs `device` and `driver` in every interleaving, with store buffers that drain at any time.
/// `is_loss` determines from the results of both whether a notification was lost.
pub(crate) fn explore(
    memory: [u32; CELLS],
    has_barriers: bool,
    device: fn(&SimulatedCpu) -> bool,
    driver: fn(&SimulatedCpu) -> bool,
    is_loss: fn(bool, bool) -> bool,
) -> Found {
    let machine = SimulatedMachine { memory, buffers: [VecDeque::new(), VecDeque::new()] };
    let side = |run, number, has_barriers| Side {
        run,
        number,
        has_barriers,
        log: Vec::new(),
        result: None,
    };
    let sides = [side(device, DEVICE, has_barriers), side(driver, DRIVER, true)];
    let mut outcome = Found::default();
    search(&machine, &sides, is_loss, &mut outcome);
    outcome
}

/// Asserts that no notification is lost with the barriers of the device, and that at least one is
/// lost without them.
pub(crate) fn check(
    memory: [u32; CELLS],
    device: fn(&SimulatedCpu) -> bool,
    driver: fn(&SimulatedCpu) -> bool,
    is_loss: fn(bool, bool) -> bool,
) {
    let outcome = explore(memory, true, device, driver, is_loss);
    assert!(outcome.executions > 50, "{outcome:?}");
    assert_eq!(outcome.losses, 0, "{outcome:?}");
    let unfenced = explore(memory, false, device, driver, is_loss);
    assert!(unfenced.losses > 0, "the search finds no loss without barriers: {unfenced:?}");
}
