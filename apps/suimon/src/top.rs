//! Command `top`: live rates of NICs, uplinks, disks and workers, and time of workers by stage.

mod screen;

use core::time::Duration;

use clap::Args;
use suimon_tables::top::{TopRates, View, render};

use crate::exit::Failure;
use crate::output::{Context, is_stdout_terminal, print};

/// Arguments of `top`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TopFlags {
    /// Interval over which rates are computed, in milliseconds, 100 to 60 000.
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(100..=60_000)
    )]
    interval: u32,
    /// Print the rates of one interval as text and exit.
    #[arg(long)]
    once: bool,
    /// Show the time of each worker by stage of processing, in percent, instead of rates.
    #[arg(long)]
    stages: bool,
}

impl TopFlags {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        let interval = Duration::from_millis(u64::from(self.interval));
        let view = if self.stages { View::Stages } else { View::Rates };
        if !context.prints_json && !self.once && is_stdout_terminal() {
            return screen::run(context, interval, view).await;
        }
        let rates = measure_interval(context, interval).await?;
        if context.prints_json {
            return Ok(crate::output::print_json(&rates)?);
        }
        Ok(print(&render(&rates, view))?)
    }
}

/// Measures the rates of one interval that begins now.
async fn measure_interval(context: &Context, interval: Duration) -> Result<TopRates, Failure> {
    let before = context.client.top().await?;
    tokio::time::sleep(interval).await;
    let after = context.client.top().await?;
    Ok(TopRates::between(&before, &after))
}
