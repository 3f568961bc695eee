//! Rates computed from two snapshots of counters, and their tables: text output of `top`.

mod disk_rates;
#[cfg(test)]
pub(crate) mod example;
mod interval;
mod power_rates;
mod rates;
mod text;
mod worker_rates;

pub use rates::TopRates;
pub use text::{View, render, tables};
