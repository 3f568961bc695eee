//! Speed at which overloaded workers shed queues: fast after a step in load (an alert), otherwise
//! one queue at a time with growing pauses.

use core::time::Duration;

use suimon_quantity::Time;

use crate::load::{Load, RUNNING_MEAN_MEASUREMENTS};
use crate::thresholds::{
    ALERT_DURATION, BACKOFF_RESET_AFTER, FURTHER_SHED_WINDOW, LOAD_STEP_MIN, MOVE_INTERVAL,
    MOVES_WITHOUT_STEP_DELAY, PEAK_DECAY_DIVISOR, SHED_INTERVAL_INITIAL, SHED_INTERVAL_MAX,
    SHED_INTERVAL_MIN,
};

/// Statistics of a load from which a step is detected.
#[derive(Clone, Copy, Debug, Default)]
struct LoadHistory {
    /// Running mean of the load.
    usual: Load,
    /// Recent maximum, which decays to the mean.
    peak: Load,
}

impl LoadHistory {
    /// Adds a measured load. Returns true if it is a step: it exceeds the recent maximum by
    /// [`LOAD_STEP_MIN`] and by twice the difference between maximum and mean.
    fn push(&mut self, load: Load) -> bool {
        let is_step = load > self.peak + (self.peak - self.usual).doubled().max(LOAD_STEP_MIN);
        self.usual = self.usual.moved_towards(load, RUNNING_MEAN_MEASUREMENTS);
        self.peak = self.peak.moved_towards(self.usual, PEAK_DECAY_DIVISOR).max(load);
        is_step
    }
}

/// State that limits the speed at which queues are shed.
///
/// After a load step, an alert: queues are shed as soon as two measurements agree, for the short
/// time that spreading takes. Afterwards one queue is shed at a time, at growing intervals: moves
/// do not solve a constant load that spreading did not solve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShedPacing {
    /// End of the alert; `None`: the alert begins with the next shed queue.
    until: Option<Time>,
    /// Minimum interval after the last queue that was shed outside of an alert.
    interval: Duration,
    next_shed_at: Time,
    /// End of the time in which further queues may be shed, to workers with room, after the last
    /// queue that was shed outside of an alert.
    followed_until: Time,
    /// Statistics of the sum of all queues' loads.
    sums: LoadHistory,
    /// Statistics of the running mean of that sum, which reveal steps among strongly varying loads.
    means: LoadHistory,
    /// Time at which the last alert began.
    began_at: Time,
    /// Number of queues shed since the last alert began, excluding those whose return was prepaid
    /// from the move budget.
    unpaid: u32,
    /// Time at which any worker with queues was last above the high mark.
    hot_at: Time,
}

impl ShedPacing {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            until: None,
            interval: Duration::ZERO,
            next_shed_at: Time::ZERO,
            followed_until: Time::ZERO,
            sums: LoadHistory::default(),
            means: LoadHistory::default(),
            began_at: Time::ZERO,
            unpaid: 0,
            hot_at: now,
        }
    }

    /// Lets the next shed queue begin an alert, because the load has changed.
    pub(crate) fn reset(&mut self) {
        self.until = None;
        self.interval = Duration::ZERO;
        self.next_shed_at = Time::ZERO;
        self.unpaid = 0;
    }

    /// Lets the next shed queue begin an alert, because a move failed and the load is not spread
    /// yet.
    pub(crate) const fn handle_move_failed(&mut self) {
        self.until = None;
        self.next_shed_at = Time::ZERO;
    }

    /// Processes the smaller one of the total queue loads in the last two measurements, and whether
    /// any worker with queues was above the high mark in one of them. Returns true if the load has
    /// changed, so that an alert is possible.
    pub(crate) fn handle_measured(&mut self, sum: Load, is_any_hot: bool, now: Time) -> bool {
        let age = now.since(self.began_at);
        let is_high = self.sums.push(sum);
        let is_usually_high = self.means.push(self.sums.usual);
        let is_step = (is_high || is_usually_high)
            && age
                >= MOVE_INTERVAL
                    .saturating_mul(self.unpaid.saturating_sub(MOVES_WITHOUT_STEP_DELAY));
        let is_other = is_step || now.since(self.next_shed_at) > BACKOFF_RESET_AFTER;
        if is_other {
            self.reset();
        }
        if is_any_hot {
            self.hot_at = now;
        }
        is_other
    }

    /// Returns true during an alert, or if the next shed queue begins one.
    pub(crate) fn is_alert_permitted(&self, now: Time) -> bool {
        self.until.is_none_or(|deadline| now <= deadline)
    }

    /// Records that a queue was shed whose return was not prepaid from the move budget.
    pub(crate) const fn record_unprepaid_shed(&mut self) {
        self.unpaid = self.unpaid.saturating_add(1);
    }

    /// Records that queues were shed during an alert. Returns true if the alert began with them.
    pub(crate) fn handle_alert_shed(&mut self, now: Time) -> bool {
        let is_first = self.until.is_none();
        if is_first {
            self.until = Some(now + ALERT_DURATION);
            self.began_at = now;
        }
        self.next_shed_at = self.next_shed_at.max(now + SHED_INTERVAL_MIN);
        is_first
    }

    /// Returns the earliest time at which the next queue may be shed outside of an alert.
    pub(crate) const fn next_shed_at(&self) -> Time {
        self.next_shed_at
    }

    /// Returns true if further queues may be shed soon after the last one, see
    /// [`FURTHER_SHED_WINDOW`].
    pub(crate) fn allows_further_shed(&self, now: Time) -> bool {
        now <= self.followed_until
    }

    /// Records that one queue was shed outside of an alert, and doubles the interval until the
    /// next.
    pub(crate) fn handle_paced_shed(&mut self, now: Time) {
        self.interval =
            self.interval.saturating_mul(2).clamp(SHED_INTERVAL_INITIAL, SHED_INTERVAL_MAX);
        self.next_shed_at = now + self.interval;
        self.followed_until = now + FURTHER_SHED_WINDOW;
    }

    /// Returns when any worker with queues was last above the high mark.
    pub(crate) const fn last_hot_at(&self) -> Time {
        self.hot_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thresholds::SHED_INTERVAL_MIN;

    const QUARTER: Duration = Duration::from_millis(250);

    fn measured(alert: &mut ShedPacing, now: &mut Time, percents: impl IntoIterator<Item = u32>) {
        for percent in percents {
            *now = *now + QUARTER;
            alert.handle_measured(Load::percent(percent), false, *now);
        }
    }

    #[test]
    fn an_alert_is_short_and_pauses_grow() {
        let mut now = Time::from_ns(1_000_000_000_000);
        let mut alert = ShedPacing::new(now);
        assert!(alert.is_alert_permitted(now + BACKOFF_RESET_AFTER), "until something is shed");
        assert!(alert.handle_alert_shed(now));
        assert!(!alert.handle_alert_shed(now + ALERT_DURATION));
        assert!(
            alert.is_alert_permitted(now + ALERT_DURATION)
                && !alert.is_alert_permitted(now + ALERT_DURATION + QUARTER)
        );
        assert_eq!(alert.next_shed_at(), now + ALERT_DURATION + SHED_INTERVAL_MIN);
        for rest_s in [60, 120, 240, 480, 900, 900] {
            now = alert.next_shed_at();
            alert.handle_paced_shed(now);
            assert_eq!(alert.next_shed_at().since(now).as_secs(), rest_s);
        }
        now = alert.next_shed_at() + BACKOFF_RESET_AFTER;
        alert.handle_measured(Load::ZERO, false, now);
        assert!(!alert.is_alert_permitted(now));
        alert.handle_measured(Load::ZERO, false, now + QUARTER);
        assert!(alert.is_alert_permitted(now));
    }

    #[test]
    fn a_step_is_more_than_the_load_varied_before() {
        let steady = [150; 400];
        let noisy: Vec<u32> = (0..400).map(|number| 100 + number * 7919 % 100).collect();
        let cases: [(&[u32], u32, bool); 6] = [
            (&steady, 155, false),
            (&steady, 165, true),
            (&steady, 20, false),
            (&noisy, 199, false),
            (&noisy, 260, false),
            (&noisy, 310, true),
        ];
        for (before, percent, is_step) in cases {
            let mut now = Time::from_ns(1_000_000_000_000);
            let mut alert = ShedPacing::new(now);
            measured(&mut alert, &mut now, before.iter().copied());
            alert.handle_alert_shed(now);
            alert.handle_paced_shed(now);
            now = now + ALERT_DURATION;
            measured(&mut alert, &mut now, [percent]);
            assert_eq!(alert.is_alert_permitted(now), is_step, "{percent} after {before:?}");
        }
    }
}
