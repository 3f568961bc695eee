//! `store`: what can be found out of a store.

use clap::{Args, Subcommand};
use suimon_contract::{
    MEASURE_SECONDS_DEFAULT, MEASURE_SECONDS_MAX, MeasureStoreRequest, Name, StoreConfig,
};

use crate::exit::Failure;
use crate::output::Context;
use crate::progress::await_end;
use crate::resource::{OwnVerb, ResourceVerb};

/// Verbs of `store`.
pub(crate) type StoreVerb = ResourceVerb<StoreConfig, OwnStoreVerb>;

/// What only stores can do.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum OwnStoreVerb {
    /// Measure what a store can do, with a file of its own that is gone afterwards. A block
    /// device is only read.
    Measure(MeasureFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MeasureFlags {
    /// The store.
    name: Name,
    /// For how long reads, writes and both are measured, each after a third as long to warm
    /// up.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = MEASURE_SECONDS_DEFAULT,
        value_parser = clap::value_parser!(u64).range(1..=MEASURE_SECONDS_MAX)
    )]
    seconds: u64,
    /// Measure although VMs or NBD clients use its disks; what is found is what they leave.
    #[arg(long)]
    beside: bool,
    /// Do not wait until it is done.
    #[arg(long)]
    no_wait: bool,
}

impl OwnVerb for OwnStoreVerb {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Measure(MeasureFlags { name, seconds, beside, no_wait }) = self;
        let request = MeasureStoreRequest { seconds, beside };
        let operation = context.client.measure_store(&name, &request).await?;
        await_end(context, operation, no_wait).await
    }
}
