//! Processing of measurements.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{ProcessorId, Time};

use crate::marks::PERIOD_MIN;
use crate::spec::VmqMode;
use crate::{Effect, Load, Measurements, Move, Vmq};

/// Moves and effects that result from measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Queues to move; see [`Vmq::handle_moved`].
    pub moves: Vec<Move>,
    /// Effects of earlier moves, now known.
    pub effects: Vec<Effect>,
}

impl Vmq {
    /// Processes measurements and decides moves. Called about four times a second; more frequent
    /// measurements are added up.
    pub fn observe(&mut self, measurements: &Measurements, now: Time) -> Observed {
        self.add_up(measurements);
        if self.period < PERIOD_MIN {
            return Observed::default();
        }
        self.take_measured();
        let mut moves = self.settle(now);
        if self.spec.enabled && self.spec.mode == VmqMode::Dynamic {
            self.patience.handle_time(now);
            self.note_heat(now);
            let shed = self.shed(now);
            if !shed.is_empty() {
                self.patience.handle_shed(now);
            }
            self.note_packable(now);
            if shed.is_empty() && moves.is_empty() {
                moves = self.pack(now);
            }
            moves.extend(shed);
        }
        Observed { moves, effects: self.take_effects() }
    }

    fn add_up(&mut self, measurements: &Measurements) {
        self.period = self.period.saturating_add(measurements.period);
        for of in &measurements.queues {
            if let Some(queue) = self.queues.get_mut(&of.queue) {
                queue.busy_ns = queue.busy_ns.saturating_add(of.busy_ns);
            }
        }
        for of in &measurements.processors {
            if let Some(seat) = self.seats.get_mut(&of.processor) {
                seat.busy_ns = seat.busy_ns.saturating_add(of.busy_ns);
            }
        }
    }

    fn take_measured(&mut self) {
        let period = core::mem::take(&mut self.period);
        for queue in self.queues.values_mut() {
            let busy_ns = core::mem::take(&mut queue.busy_ns);
            queue.load.push(Load::measured(busy_ns, period));
            if queue.coming_from.is_none() {
                queue.measured = queue.measured.saturating_add(1);
            }
        }
        for (id, seat) in &mut self.seats {
            seat.busy.push(Load::measured(core::mem::take(&mut seat.busy_ns), period));
            let here = self.queues.values().filter(|queue| queue.at == *id);
            let own: Load = here.map(|queue| queue.load.latest()).sum();
            // An unknown load is assumed to be unchanged.
            if seat.is_disturbed {
                seat.other.push(seat.other.latest());
            } else {
                seat.other.push(seat.busy.latest() - own);
            }
        }
        self.note_disturbed();
    }

    /// Marks processors of queues in transit as disturbed in the next measurement.
    fn note_disturbed(&mut self) {
        for seat in self.seats.values_mut() {
            seat.is_disturbed = false;
        }
        for queue in self.queues.values() {
            let Some(from) = queue.coming_from else { continue };
            for id in [from, queue.at] {
                if let Some(seat) = self.seats.get_mut(&id) {
                    seat.is_disturbed = true;
                }
            }
        }
    }

    fn take_effects(&mut self) -> Vec<Effect> {
        let Self { seats, queues, .. } = self;
        let busy = |id: ProcessorId| seats.get(&id).map_or(Load::ZERO, |seat| seat.busy.latest());
        let mut effects = Vec::new();
        let mut disappointing = Vec::new();
        self.watches.retain(|queue, watch| {
            let takes = queues.get(queue).map_or(Load::ZERO, |of| of.load.latest());
            let Some(effect) = watch.handle_measured(busy, takes) else { return true };
            effects.push(effect);
            if watch.disappoints() {
                disappointing.push(effect.to);
            }
            false
        });
        for id in disappointing {
            if let Some(seat) = self.seats.get_mut(&id) {
                seat.disappoints = true;
            }
        }
        effects
    }

    /// Returns the time for which a processor must be under-used before it is emptied. Grows after
    /// recent wrong decisions.
    pub const fn pack_hold(&self) -> Duration {
        self.patience.hold()
    }
}
