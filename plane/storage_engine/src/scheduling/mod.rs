//! Dispatch of requests by the schedulers of their stores, and the accounting for it.

pub(crate) mod dispatch;
mod engine_stores;
#[cfg(test)]
mod limiting_factor_tests;
#[cfg(test)]
mod mirror_tests;
pub(crate) mod phases;
pub(crate) mod queued_list;
#[cfg(test)]
mod shared_store_tests;
#[cfg(test)]
mod stalled_worker_tests;
pub(crate) mod store;
#[cfg(test)]
mod tests;
mod unscheduled;
pub(crate) mod unscheduled_time;
