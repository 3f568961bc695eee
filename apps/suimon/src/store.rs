//! Commands of `store`: measurement of stores.

use clap::{Args, Subcommand};
use suimon_contract::{
    MEASURE_SECONDS_DEFAULT, MEASURE_SECONDS_MAX, MeasureStoreRequest, Name, StoreConfig,
};

use crate::exit::Failure;
use crate::kind_specific_verb::KindSpecificVerb;
use crate::output::Context;
use crate::progress::await_end;
use crate::resource::ResourceVerb;

/// Verbs of `store`.
pub(crate) type StoreVerb = ResourceVerb<StoreConfig, StoreSpecificVerb>;

/// Verbs that only stores have.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StoreSpecificVerb {
    /// Measure the capacity of a store in IOPS.
    Measure(MeasureFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MeasureFlags {
    /// Name of the store.
    name: Name,
    /// Measuring time in seconds, 1 to 600, of each pattern: reads, writes, and both. A warm-up of
    /// a third of it precedes each pattern.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = MEASURE_SECONDS_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..=MEASURE_SECONDS_MAX)
    )]
    seconds: u64,
    /// Measure while VMs or NBD clients use disks of the store. The measurement slows them down,
    /// and the result excludes the capacity that they use.
    #[arg(long)]
    beside: bool,
    /// Print the number of the operation and return without waiting for its end.
    #[arg(long)]
    no_wait: bool,
}

impl KindSpecificVerb for StoreSpecificVerb {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Measure(MeasureFlags { name, seconds, beside, no_wait }) = self;
        let request = MeasureStoreRequest { seconds, while_in_use: beside };
        let operation = context.client.measure_store(&name, &request).await?;
        await_end(context, operation, no_wait).await
    }
}
