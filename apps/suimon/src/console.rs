//! Commands of `console`: the web console.

use clap::Subcommand;

use crate::exit::Failure;
use crate::output::Context;

/// Verbs of `console`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum ConsoleVerb {
    /// Print a one-time login URL for the web console, valid for 1 min.
    Login,
}

impl ConsoleVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Login = self;
        let login = context.client.new_console_login().await?;
        Ok(context.show(&login, |login| format!("{}\n", login.url))?)
    }
}
