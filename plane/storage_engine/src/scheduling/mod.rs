//! Dispatch of requests by the schedulers of their stores, and the accounting for it.

pub(crate) mod dispatch;
pub(crate) mod engine_stores;
#[cfg(test)]
pub(crate) mod limiting_factor_tests;
#[cfg(test)]
pub(crate) mod mirror_tests;
pub(crate) mod phases;
pub(crate) mod queued_list;
#[cfg(test)]
pub(crate) mod shared_store_tests;
#[cfg(test)]
pub(crate) mod stalled_worker_tests;
pub(crate) mod store;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod unscheduled;
pub(crate) mod unscheduled_time;
