//! How long processors poll before they sleep.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// About what a wake-up costs both sides.
const PATIENCE_DEFAULT: Duration = Duration::from_micros(50);

/// A processor polls its rings this long after the last frame before it arms notifications.
/// All processors share one, which only those read that have nothing to do.
pub(crate) struct Patience {
    ns: AtomicU64,
}

impl Default for Patience {
    fn default() -> Self {
        let patience = Self { ns: AtomicU64::new(0) };
        patience.set(PATIENCE_DEFAULT);
        patience
    }
}

impl Patience {
    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.ns.load(Relaxed))
    }

    pub(crate) fn set(&self, patience: Duration) {
        self.ns.store(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }
}
