//! Long help of the commands: effect, how long it lasts, effect on running VMs, and examples.
//!
//! The tables name commands by their words (`switch add`). Summaries and options are defined where
//! the arguments are parsed.

mod disks;
mod host;
mod network;
mod nodes;
mod qos;
mod vms;
mod workers;

use clap::Command;

/// Long help of one command.
pub(crate) struct Help {
    /// Words of the command, without `suimon`.
    path: &'static str,
    /// Complete sentences that follow the summary.
    text: &'static str,
    /// True if the command changes desired state.
    is_kept: bool,
    /// Complete command lines, shown as examples.
    examples: &'static [&'static str],
}

/// Statement about changes of desired state, the same for every command.
const KEPT: &str = "The change is stored in desired state: it survives restarts of the daemon and \
                    of the host. A later `suimon apply`, and a start of the daemon after its host \
                    file was edited, replace it by what the host file says: make the change there, \
                    too. `suimon export` prints the present state as a host file.";

/// Returns the help of a command that does not change desired state.
const fn reads(path: &'static str, text: &'static str, examples: &'static [&'static str]) -> Help {
    Help { path, text, is_kept: false, examples }
}

/// Returns the help of a command that changes desired state.
const fn keeps(path: &'static str, text: &'static str, examples: &'static [&'static str]) -> Help {
    Help { path, text, is_kept: true, examples }
}

/// Help texts of all commands.
const ALL: [&[Help]; 8] = [
    host::HELP,
    network::HELP,
    network::PORTS,
    workers::HELP,
    disks::HELP,
    qos::HELP,
    vms::HELP,
    nodes::HELP,
];

/// Returns the help of the command with these words.
fn of(path: &str) -> Option<&'static Help> {
    ALL.iter().copied().flatten().find(|help| help.path == path)
}

/// Returns the command with the long help of all of its subcommands.
pub(crate) fn with_texts(command: Command) -> Command {
    extended(command, "")
}

fn extended(command: Command, path: &str) -> Command {
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
        let sub = extended(sub, &path);
        match of(&path) {
            Some(help) => help.applied_to(sub),
            None => sub,
        }
    })
}

impl Help {
    fn applied_to(&self, command: Command) -> Command {
        let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
        let mut text = format!("{summary}.\n\n{}", self.text);
        if self.is_kept {
            text.push_str("\n\n");
            text.push_str(KEPT);
        }
        let title = if self.examples.len() == 1 { "Example" } else { "Examples" };
        let examples: String =
            self.examples.iter().map(|example| format!("  {example}\n")).collect();
        command.long_about(text).after_long_help(format!("{title}:\n{examples}"))
    }
}

#[cfg(test)]
#[path = "help_tests.rs"]
mod tests;
