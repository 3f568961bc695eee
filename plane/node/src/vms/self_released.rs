//! Devices that a guest releases without a request, such as by powering off their slot. Each is
//! plugged again, after a delay that doubles while the guest continues: a guest determines neither
//! the rate of events nor that of writes to the state store.

mod driving;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use suimon_ports::VmDevice;

/// Longest delay before a device is plugged again, in units of the first delay
/// ([`Driver::peer_request_interval`](super::driver::Driver::peer_request_interval)).
const DELAY_MAX: u32 = 300;

/// Devices of a run that the guest has released without a request.
#[derive(Debug, Default)]
pub(super) struct SelfReleased(BTreeMap<VmDevice, Release>);

#[derive(Clone, Copy, Debug)]
struct Release {
    /// Time at which the device may be plugged again.
    plug_at: Instant,
    delay: Duration,
    /// True until the device may be plugged again.
    is_pending: bool,
}

impl SelfReleased {
    /// Records that the guest has released a device. Returns the delay until the device is plugged
    /// again: `first`, or twice the previous delay. After the device was plugged for longer than
    /// the longest delay, the delay is `first` again.
    pub(super) fn record_release(
        &mut self,
        device: VmDevice,
        now: Instant,
        first: Duration,
    ) -> Duration {
        let longest = first * DELAY_MAX;
        let before = self.0.get(&device).filter(|before| now < before.plug_at + longest);
        let delay = before.map_or(first, |before| (before.delay * 2).min(longest));
        self.0.insert(device, Release { plug_at: now + delay, delay, is_pending: true });
        delay
    }

    /// Returns true if the device must not be plugged yet.
    pub(super) fn is_delayed(&self, device: &VmDevice, now: Instant) -> bool {
        self.0.get(device).is_some_and(|release| release.plug_at > now)
    }

    /// Returns the time at which the next device may be plugged.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let pending = self.0.values().filter(|release| release.is_pending);
        pending.map(|release| release.plug_at).min()
    }

    /// Ends the delays that have passed. Returns true if at least one has ended.
    fn end_delays(&mut self, now: Instant) -> bool {
        let mut has_ended = false;
        for release in self.0.values_mut().filter(|release| release.plug_at <= now) {
            has_ended |= std::mem::take(&mut release.is_pending);
        }
        has_ended
    }

    /// Forgets devices that are not configured, which bounds the number of entries.
    pub(super) fn retain(&mut self, is_configured: impl Fn(&VmDevice) -> bool) {
        self.0.retain(|device, _| is_configured(device));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(1);

    fn nic(name: &str) -> VmDevice {
        VmDevice::Nic(name.to_owned())
    }

    #[test]
    fn delays_double_up_to_a_limit_and_begin_anew_after_a_quiet_time() {
        let (mut released, mut now) = (SelfReleased::default(), Instant::now());
        let mut delays = Vec::new();
        for _ in 0..11 {
            let delay = released.record_release(nic("a"), now, FIRST);
            assert_eq!(released.deadline(), Some(now + delay));
            assert!(released.is_delayed(&nic("a"), now) && !released.is_delayed(&nic("b"), now));
            now += delay;
            assert!(!released.is_delayed(&nic("a"), now));
            assert!(released.end_delays(now) && !released.end_delays(now));
            assert_eq!(released.deadline(), None);
            delays.push(delay.as_secs());
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        now += FIRST * DELAY_MAX;
        assert_eq!(released.record_release(nic("a"), now, FIRST), FIRST);
    }

    #[test]
    fn devices_that_are_not_configured_are_forgotten() {
        let (mut released, now) = (SelfReleased::default(), Instant::now());
        for round in 0..1000 {
            released.record_release(nic(&round.to_string()), now, FIRST);
            released.retain(|device| *device == nic("0") || *device == nic(&round.to_string()));
        }
        assert_eq!(released.0.len(), 2);
        assert!(released.deadline().is_some());
    }
}
