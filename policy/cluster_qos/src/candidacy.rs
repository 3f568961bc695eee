//! Timing of candidacies for the leadership of a store.

use core::time::Duration;

use suimon_quantity::Time;

/// Duration below which a term counts as short. More than [`IMMEDIATE_MAX`] short terms in a row
/// indicate that leading fails at present.
const SHORT_TERM: Duration = Duration::from_secs(30);
/// Number of consecutive short terms up to which this node stands for election again without a
/// pause.
const IMMEDIATE_MAX: u32 = 2;
/// First pause before a candidacy; it doubles with each further short term, up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(16);

/// Back-off of candidacies for the leadership of a store.
///
/// A leader that resigned because it could not write is followed by another, which first has to
/// read the whole state: if etcd is overloaded, repeated elections prolong the overload. So all
/// nodes back off exponentially after consecutive short terms. Reservations of nodes stay in effect
/// without a leader.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidacy {
    ended_at: Option<Time>,
    /// Number of consecutive terms shorter than [`SHORT_TERM`] plus the pause before them.
    short: u32,
    campaign_at: Time,
}

impl Candidacy {
    /// Records that the store has had no leader since `now`, and sets the pause before this node
    /// stands for election.
    pub fn handle_leader_absent(&mut self, now: Time) {
        let is_soon = self.ended_at.is_some_and(|end| now.since(end) < SHORT_TERM + self.pause());
        self.short = if is_soon { self.short.saturating_add(1) } else { 1 };
        self.ended_at = Some(now);
        self.campaign_at = now + self.pause();
    }

    fn pause(&self) -> Duration {
        match self.short.checked_sub(IMMEDIATE_MAX + 1) {
            None => Duration::ZERO,
            Some(exponent) => PAUSE.saturating_mul(1_u32.checked_shl(exponent).unwrap_or(u32::MAX)),
        }
        .min(PAUSE_MAX)
    }

    /// Returns the earliest time at which this node may stand for election while there is no
    /// leader.
    pub const fn campaign_at(&self) -> Time {
        self.campaign_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pause in seconds after each term; `terms_s` contains the durations of the terms
    /// in seconds.
    fn waited(terms_s: &[u64]) -> Vec<u64> {
        let (mut candidacy, mut now) = (Candidacy::default(), Time::from_ns(1 << 50));
        let wait = |term: &u64| {
            now = now + Duration::from_secs(*term);
            candidacy.handle_leader_absent(now);
            let pause = candidacy.campaign_at().since(now);
            now = candidacy.campaign_at();
            pause.as_secs()
        };
        terms_s.iter().map(wait).collect()
    }

    #[test]
    fn short_terms_are_followed_by_longer_and_longer_pauses() {
        assert_eq!(waited(&[100, 4, 4, 4, 4, 4, 4, 4]), [0, 0, 1, 2, 4, 8, 16, 16]);
        assert_eq!(waited(&[1; 80])[79], 16);
    }

    #[test]
    fn a_long_term_is_followed_by_an_immediate_candidacy() {
        assert_eq!(waited(&[100, 4, 4, 4, 31, 4, 4]), [0, 0, 1, 2, 0, 0, 1]);
        assert_eq!(waited(&[40, 50, 60]), [0, 0, 0]);
    }
}
