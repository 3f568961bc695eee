//! `top`: live rates of NICs, uplinks, disks and processors, and where processors' time goes.

mod disk_rates;
mod power_rates;
mod rates;
mod screen;
mod text;

use core::time::Duration;

use clap::Args;

use crate::exit::Failure;
use crate::output::{Context, is_terminal, print};
use rates::Rates;

#[cfg(test)]
pub(crate) use rates::tests::example;

/// How `top` shows rates.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TopFlags {
    /// Milliseconds over which rates are taken, 100 to 60000.
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(100..=60_000)
    )]
    interval: u32,
    /// Print the rates of one interval and end.
    #[arg(long)]
    once: bool,
    /// Show where each processor's time goes, in percent of its time.
    #[arg(long)]
    stages: bool,
}

impl TopFlags {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        let interval = Duration::from_millis(u64::from(self.interval));
        let view = if self.stages { text::View::Stages } else { text::View::Rates };
        if !context.json && !self.once && is_terminal() {
            return screen::run(context, interval, view).await;
        }
        let rates = one(context, interval).await?;
        if context.json {
            return Ok(crate::output::print_json(&rates)?);
        }
        Ok(print(&text::render(&rates, view))?)
    }
}

/// The rates of one interval that begins now.
async fn one(context: &Context, interval: Duration) -> Result<Rates, Failure> {
    let before = context.client.top().await?;
    tokio::time::sleep(interval).await;
    let after = context.client.top().await?;
    Ok(Rates::between(&before, &after))
}
