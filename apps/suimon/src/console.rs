//! Commands of `console`: the web console.

use clap::Subcommand;

use crate::exit::Failure;
use crate::output::Context;

/// Verbs of `console`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum ConsoleVerb {
    /// Print a single-use address that logs a browser on the host in to the console, valid for one
    /// minute. From another machine, open a tunnel first: `ssh -L 7446:127.0.0.1:7446 HOST`.
    Login,
}

impl ConsoleVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Login = self;
        let login = context.client.new_console_login().await?;
        Ok(context.show(&login, |login| format!("{}\n", login.url))?)
    }
}
