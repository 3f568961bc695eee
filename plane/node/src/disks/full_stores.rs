//! Space of stores: periodic queries, failed stores, warnings, and requests queued for lack of
//! space.

mod control;
mod failures;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use suimon_contract::{
    DiskConfig, DiskFullStatus, QosDelivery, QosFlowStatus, QosLimitingFactor, QosTimeShare,
    StoreConfig,
};
use suimon_ports::StoreSpace;
use suimon_storage_engine::FullStoreView;

pub(crate) use self::control::QueuedWrites;

/// Hysteresis: a nearly full store stays nearly full until its used part is more than this many
/// percent below the threshold.
const HYSTERESIS_PERCENT: u64 = 1;

/// Last reported space of stores, by path. Clones share the contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreSpaces(Arc<Mutex<Spaces>>);

#[derive(Debug, Default)]
struct Spaces {
    known: BTreeMap<PathBuf, StoreSpace>,
    /// Results of the last checks of stores: that the store can be read, or the reason why not.
    checks: BTreeMap<PathBuf, Result<(), String>>,
    /// Stores with a query in progress.
    queried: BTreeSet<PathBuf>,
    /// First store that the last round of queries has left out because of the number of threads.
    skipped: Option<PathBuf>,
}

/// Query of a store in progress; the next one can begin when it is dropped.
struct Query {
    spaces: StoreSpaces,
    path: PathBuf,
}

impl StoreSpaces {
    fn get(&self, path: &Path) -> Option<StoreSpace> {
        lock(&self.0).known.get(path).copied()
    }

    /// Returns the result of the last check of a store; `None` if it was not checked yet.
    fn check(&self, path: &Path) -> Option<Result<(), String>> {
        lock(&self.0).checks.get(path).cloned()
    }

    /// Removes the space of stores that are not open, and the results for stores that are not used.
    fn retain(&self, is_open: impl Fn(&Path) -> bool, is_used: impl Fn(&Path) -> bool) {
        let mut spaces = lock(&self.0);
        spaces.known.retain(|path, _| is_open(path));
        spaces.checks.retain(|path, _| is_used(path));
    }

    /// Returns the paths in the order of the next round of queries: it begins at the store at which
    /// the last round ended early.
    fn in_query_order(&self, paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = paths.into_iter().collect();
        if let Some(first) = lock(&self.0).skipped.take() {
            let at = paths.partition_point(|path| *path < first);
            paths.rotate_left(at);
        }
        paths
    }

    /// Ends a round of queries before this store.
    fn end_round_at(&self, path: PathBuf) {
        lock(&self.0).skipped = Some(path);
    }

    /// Begins a query; `None` if one is in progress.
    fn begin_query(&self, path: &Path) -> Option<Query> {
        let is_new = lock(&self.0).queried.insert(path.to_owned());
        is_new.then(|| Query { spaces: self.clone(), path: path.to_owned() })
    }
}

impl Query {
    fn set(&self, space: Option<StoreSpace>, check: Result<(), String>) {
        let mut spaces = lock(&self.spaces.0);
        spaces.known.extend(space.map(|space| (self.path.clone(), space)));
        spaces.checks.insert(self.path.clone(), check);
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        lock(&self.spaces.0).queried.remove(&self.path);
    }
}

/// Returns the used space of a store in percent, rounded down; `None` if the store has no bytes.
pub(super) fn used_percent(space: &StoreSpace) -> Option<u64> {
    let used = space.total_bytes.saturating_sub(space.free_bytes);
    let percent = u128::from(used) * 100 / u128::from(space.total_bytes).max(1);
    (space.total_bytes > 0).then(|| u64::try_from(percent).unwrap_or(u64::MAX))
}

/// Returns true if a store is nearly full. `previous`: the previous result, for hysteresis.
fn is_nearly_full(config: &StoreConfig, space: &StoreSpace, previous: bool) -> bool {
    let threshold = u64::from(config.full_warning_percent);
    let threshold = if previous { threshold.saturating_sub(HYSTERESIS_PERCENT) } else { threshold };
    used_percent(space).is_some_and(|percent| percent >= threshold)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn full_status(full: &FullStoreView) -> DiskFullStatus {
    DiskFullStatus {
        queued_requests: full.queued as u64,
        full_for_ms: u64::try_from(full.full_for.as_millis()).unwrap_or(u64::MAX),
    }
}

pub(super) fn full_reason(config: &DiskConfig, full: &FullStoreView) -> String {
    let (store, seconds) = (&config.store, full.full_for.as_secs());
    match full.queued {
        0 => format!("store {store} is full, and requests that need space fail; free space on it"),
        queued => format!(
            "store {store} has been full for {seconds} s, and requests are queued ({queued}); free \
             space on it"
        ),
    }
}

/// Adds the time for which requests of a disk were queued for space to the limiting factors of its
/// flow.
pub(super) fn add_full_store_factor(flow: &mut QosFlowStatus, full: &FullStoreView) {
    if full.queued > 0 {
        limit(&mut flow.last_5_s, Duration::from_secs(5), full.full_for);
        limit(&mut flow.last_5_min, Duration::from_secs(300), full.full_for);
    }
}

const WHOLE_PPM: u64 = 1_000_000;

fn limit(delivery: &mut QosDelivery, window: Duration, full_time: Duration) {
    let window = Duration::from_nanos(delivery.window_ns).min(window).max(Duration::from_secs(1));
    let share = u128::from(WHOLE_PPM) * full_time.min(window).as_nanos() / window.as_nanos();
    let share = u64::try_from(share).unwrap_or(WHOLE_PPM).min(WHOLE_PPM);
    let remaining_ppm = WHOLE_PPM - share;
    let mut assigned_ppm = 0;
    for share in &mut delivery.limited_by {
        let scaled = u64::from(share.share_ppm) * remaining_ppm / WHOLE_PPM;
        share.share_ppm = u32::try_from(scaled).unwrap_or(u32::MAX);
        assigned_ppm += scaled;
    }
    delivery.limited_by.retain(|share| share.share_ppm > 0);
    // The remainder of rounding is added to the share of the full store.
    let share_ppm = u32::try_from(WHOLE_PPM.saturating_sub(assigned_ppm)).unwrap_or(u32::MAX);
    delivery.limited_by.insert(0, QosTimeShare { factor: QosLimitingFactor::StoreFull, share_ppm });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(percent: u8) -> StoreConfig {
        let store = serde_json::json!({
            "name": "s", "path": "/srv", "full_warning_percent": percent,
        });
        serde_json::from_value(store).unwrap()
    }

    #[test]
    fn a_store_is_nearly_full_from_its_threshold_on_and_until_it_is_clearly_below() {
        let space = |used: u64| StoreSpace { total_bytes: 1000, free_bytes: 1000 - used };
        let nearly_full = |used, previous| is_nearly_full(&store(90), &space(used), previous);
        assert_eq!([899, 900, 1000].map(|used| nearly_full(used, false)), [false, true, true]);
        assert_eq!([889, 890, 899].map(|used| nearly_full(used, true)), [false, true, true]);
        assert!(!is_nearly_full(&store(1), &StoreSpace { total_bytes: 0, free_bytes: 0 }, false));
        let full_store = StoreSpace { total_bytes: u64::MAX, free_bytes: 0 };
        assert_eq!(used_percent(&full_store), Some(100));
    }

    #[test]
    fn a_round_of_queries_begins_where_the_last_one_ended() {
        let spaces = StoreSpaces::default();
        let in_order = || -> String {
            let paths = ["a", "b", "c"].map(PathBuf::from).into_iter().collect();
            let ordered = spaces.in_query_order(paths);
            ordered.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(in_order(), "abc");
        // A path that is not configured any more counts as the next one.
        for (skipped, expected) in [("b", "bca"), ("aa", "bca"), ("c", "cab"), ("d", "abc")] {
            spaces.end_round_at(skipped.into());
            assert_eq!(in_order(), expected, "{skipped}");
        }
        assert_eq!(in_order(), "abc");
    }

    #[test]
    fn time_queued_for_space_is_attributed_to_the_store() {
        let share = |factor, share_ppm| QosTimeShare { factor, share_ppm };
        let limited_by = vec![
            share(QosLimitingFactor::QueueDepth, 700_000),
            share(QosLimitingFactor::ClientIdle, 300_000),
        ];
        let delivery_window =
            QosDelivery { window_ns: 5_000_000_000, limited_by, ..QosDelivery::default() };
        let limited = |full_ms| {
            let mut delivery = delivery_window.clone();
            limit(&mut delivery, Duration::from_secs(5), Duration::from_millis(full_ms));
            delivery.limited_by
        };
        let expected = [
            share(QosLimitingFactor::StoreFull, 500_000),
            share(QosLimitingFactor::QueueDepth, 350_000),
            share(QosLimitingFactor::ClientIdle, 150_000),
        ];
        assert_eq!(limited(2500), expected);
        assert_eq!(limited(60_000), [share(QosLimitingFactor::StoreFull, 1_000_000)]);
    }
}
