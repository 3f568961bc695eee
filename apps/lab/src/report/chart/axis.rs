//! Axes: conversion of values to coordinates, and tick marks.

/// Axis that maps a range of values to a range of coordinates of the SVG image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    from: f64,
    to: f64,
    begins: f64,
    ends: f64,
    is_log: bool,
}

impl Axis {
    /// Returns a linear axis from 0, or from the lowest value if negative, to a round number above
    /// `high`. `start` and `ends` are the coordinates of its ends.
    pub(super) fn linear(low: f64, high: f64, start: f64, ends: f64) -> Self {
        let low = low.min(0.0);
        let high = if high > low { high } else { low + 1.0 };
        let step = step(high - low, 5);
        let (from, to) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { from, to, begins: start, ends, is_log: false }
    }

    /// Returns a linear axis whose ends are exactly the values `from` and `to`.
    pub(super) fn linear_exact(from: f64, to: f64, start: f64, ends: f64) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self { from, to, begins: start, ends, is_log: false }
    }

    /// Returns a base-2 logarithmic axis between the positive values `from` and `to`.
    pub(super) fn log(from: f64, to: f64, start: f64, ends: f64) -> Self {
        let from = from.max(f64::MIN_POSITIVE);
        let to = if to > from { to } else { from * 2.0 };
        Self { from, to, begins: start, ends, is_log: true }
    }

    /// Returns the coordinate of a value.
    pub(super) fn coordinate(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.from).log2() / (self.to / self.from).log2()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        self.begins + (self.ends - self.begins) * share
    }

    /// Returns at most about `tick_count` round values within the axis, at which ticks are drawn.
    pub(super) fn ticks(&self, tick_count: u32) -> Vec<f64> {
        let step = step(self.to - self.from, tick_count);
        let first = (self.from / step).ceil();
        let count = ((self.to / step).floor() - first) as i64;
        (0..=count.clamp(0, 100)).map(|number| (first + number as f64) * step).collect()
    }
}

/// Returns the step of ticks: 1, 2 or 5 times a power of ten, with at most `tick_count` steps in
/// the span.
fn step(span: f64, tick_count: u32) -> f64 {
    let rough = span / f64::from(tick_count.max(1));
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn ticks_are_round_and_cover_the_range() {
        let axis = Axis::linear(0.0, 93.0, 200.0, 0.0);
        assert_eq!(axis.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(axis.coordinate(0.0), 200.0);
        assert_eq!(axis.coordinate(100.0), 0.0);
        let axis = Axis::linear(-3.0, 0.4, 0.0, 10.0);
        assert_eq!(axis.ticks(4), [-3.0, -2.0, -1.0, 0.0, 1.0]);
        // An empty range is drawn too.
        assert_eq!(Axis::linear(0.0, 0.0, 0.0, 10.0).coordinate(0.0), 0.0);
    }

    #[test]
    fn powers_of_two_are_equally_spaced() {
        let axis = Axis::log(1.0, 32.0, 0.0, 100.0);
        for (value, coordinate) in [(1.0, 0.0), (2.0, 20.0), (8.0, 60.0), (32.0, 100.0)] {
            assert!((axis.coordinate(value) - coordinate).abs() < 1e-9);
        }
    }
}
