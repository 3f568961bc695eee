//! The connection to the virtual device, and virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Result;

use super::Device;
use crate::world::{Arrival, World};

/// Period at which the device's state machines run.
const STEP: Duration = Duration::from_millis(10);
/// Virtual time that sending a frame takes, which makes a flood end.
const SEND: Duration = Duration::from_micros(100);

#[derive(Debug)]
pub(super) struct VirtualWorld {
    device: Device,
    now: Duration,
    stepped: Duration,
    waiting: VecDeque<Arrival>,
}

impl VirtualWorld {
    pub(super) fn new(device: Device) -> Self {
        Self { device, now: Duration::ZERO, stepped: Duration::ZERO, waiting: VecDeque::new() }
    }

    fn step(&mut self) {
        self.stepped = self.now;
        for (interface, frame) in self.device.tick(self.now) {
            self.waiting.push_back(Arrival { interface, time: self.now, frame });
        }
    }
}

impl World for VirtualWorld {
    fn interfaces(&self) -> usize {
        self.device.ports.len()
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn send(&mut self, interface: usize, frame: &[u8]) -> Result<()> {
        if let Some(answer) = self.device.handle(interface, frame, self.now) {
            self.waiting.push_back(Arrival { interface, time: self.now, frame: answer });
        }
        self.now += SEND;
        if self.now >= self.stepped + STEP {
            self.step();
        }
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Arrival>> {
        loop {
            if let Some(arrival) = self.waiting.pop_front() {
                return Ok(Some(arrival));
            }
            if self.now >= until {
                return Ok(None);
            }
            self.now = (self.stepped + STEP).min(until).max(self.now);
            if self.now >= self.stepped + STEP {
                self.step();
            }
        }
    }

    fn set_link(&mut self, interface: usize, up: bool) -> Result<()> {
        self.device.ports[interface].set_link(up, self.now);
        Ok(())
    }
}
