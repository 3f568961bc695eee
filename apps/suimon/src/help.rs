//! Long help of the commands: what a command does, how long its effect lasts, its effect on running
//! VMs, and examples.
//!
//! The tables name commands by their words (`switch add`). Summaries and options are defined where
//! the arguments are parsed.

mod disks;
mod entry;
mod host;
mod network;
mod nodes;
mod qos;
mod vms;
mod workers;

use clap::Command;

use crate::help::entry::Help;

/// Help texts of all commands.
const ALL: [&[Help]; 8] = [
    host::HELP,
    network::HELP,
    network::PORT_HELP,
    workers::HELP,
    disks::HELP,
    qos::HELP,
    vms::HELP,
    nodes::HELP,
];

/// Returns the help of the command with these words; `None` if it has no long help.
fn find(path: &str) -> Option<&'static Help> {
    ALL.iter().copied().flatten().find(|help| help.command_path == path)
}

/// Returns the command with the long help of all of its subcommands.
pub(crate) fn with_long_help(command: Command) -> Command {
    extended(command, "")
}

fn extended(command: Command, path: &str) -> Command {
    command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
        let sub = extended(sub, &path);
        match find(&path) {
            Some(help) => help.apply_to(sub),
            None => sub,
        }
    })
}

#[cfg(test)]
#[path = "help_tests.rs"]
mod tests;
