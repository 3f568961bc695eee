//! Verbs specific to one kind of resource.

use core::convert::Infallible;

use clap::Subcommand;

use crate::exit::Failure;
use crate::output::Context;

/// Verbs specific to one kind of resource.
pub(crate) trait KindSpecificVerb: Subcommand {
    /// Executes the verb with its arguments.
    async fn run(self, context: &Context) -> Result<(), Failure>;
}

impl KindSpecificVerb for Infallible {
    async fn run(self, _context: &Context) -> Result<(), Failure> {
        match self {}
    }
}
