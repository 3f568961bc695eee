//! Old names of commands, options, keys and environment variables. They are accepted until the
//! version that removes them, with a warning on standard error.

use std::ffi::OsString;

use clap::Command;
use suimon_contract::{RENAMES, Rename, RenamedItem, ResourceKind, rename_of_old_key};

use crate::key_flags::{current_key_name, renamed_options};

/// Adds old names of commands and options to the command line as hidden aliases, and reads old
/// environment variables in place of absent new ones.
pub(crate) fn with_old_name_aliases(command: Command) -> Command {
    let command = RENAMES.iter().fold(command, |command, rename| match rename.item {
        RenamedItem::Command if command.find_subcommand(rename.new).is_some() => {
            command.mut_subcommand(rename.new, |sub| sub.alias(rename.old))
        }
        _ => command,
    });
    accept_options(command)
}

/// Adds old names of options to a command and its subcommands.
fn accept_options(command: Command) -> Command {
    command.mut_subcommands(accept_options).mut_args(|arg| {
        let long_option = arg.get_long().map(|long| format!("--{long}"));
        // Options of keys have their old names already.
        let old = arg.get_all_aliases().unwrap_or_default();
        let old: Vec<String> = old.into_iter().map(str::to_owned).collect();
        let variable = arg.get_env().and_then(|name| name.to_str().map(str::to_owned));
        RENAMES.iter().fold(arg, |arg, rename| match rename.item {
            RenamedItem::CommandOption if long_option.as_deref() == Some(rename.new) => {
                let name = rename.old.trim_start_matches('-');
                if old.iter().any(|old| old == name) { arg } else { arg.alias(name) }
            }
            RenamedItem::EnvironmentVariable if variable.as_deref() == Some(rename.new) => {
                let is_set = |name| std::env::var_os(name).is_some();
                if is_set(rename.old) && !is_set(rename.new) { arg.env(rename.old) } else { arg }
            }
            _ => arg,
        })
    })
}

/// Returns a warning for each old name in the words of a valid command line, and for each old
/// environment variable in use.
pub(crate) fn old_name_warnings(
    command: &Command,
    arguments: &[OsString],
    is_set: impl Fn(&str) -> bool,
) -> Vec<String> {
    let arguments: Vec<&str> =
        arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
    let noun =
        arguments.iter().find(|argument| is_noun(command, argument)).copied().unwrap_or_default();
    let mut warnings = Vec::new();
    for rename in RENAMES {
        let is_used = match rename.item {
            RenamedItem::Command => noun == rename.old,
            RenamedItem::CommandOption => {
                arguments.iter().any(|argument| is_option(argument, rename.old))
            }
            RenamedItem::EnvironmentVariable => is_set(rename.old) && !is_set(rename.new),
            _ => false,
        };
        if is_used {
            warnings.push(rename.warning());
        }
    }
    for (index, argument) in arguments.iter().enumerate() {
        let before = index
            .checked_sub(1)
            .and_then(|index| arguments.get(index))
            .copied()
            .unwrap_or_default();
        // `--authority` is an old global option, and with `node` also the old option of a key.
        if let Some(warning) =
            argument_warning(noun, before, argument).filter(|warning| !warnings.contains(warning))
        {
            warnings.push(warning);
        }
    }
    warnings
}

/// Prints warnings on standard error: one line of text each, or with JSON output one JSON object.
pub(crate) fn print_warnings(json: bool, warnings: &[String]) {
    match (json, warnings) {
        (_, []) => {}
        (true, _) => eprintln!("{}", serde_json::json!({ "warnings": warnings })),
        (false, _) => warnings.iter().for_each(|warning| eprintln!("warning: {warning}")),
    }
}

/// Returns true if the argument is the current or old first word of a command.
fn is_noun(command: &Command, argument: &str) -> bool {
    let is_renamed =
        |rename: &Rename| rename.item == RenamedItem::Command && rename.old == argument;
    command.find_subcommand(argument).is_some() || RENAMES.iter().any(is_renamed)
}

fn is_option(argument: &str, option: &str) -> bool {
    argument.strip_prefix(option).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('='))
}

/// Returns the warning about a key's old name in `argument`: as an option, in `KEY=VALUE`, or after
/// `--unset` (`before`); `None` if it has none.
fn argument_warning(noun: &str, before: &str, argument: &str) -> Option<String> {
    let kind = ResourceKind::RESOURCES.into_iter().find(|kind| kind.noun() == noun);
    if let Some(kind) = kind {
        let used = renamed_options(kind).into_iter().find(|(old, _)| is_option(argument, old));
        if let Some((old, new)) = used {
            return Some(warning(&old, &new));
        }
        let unset = argument.strip_prefix("--unset=").or((before == "--unset").then_some(argument));
        if let Some((id, present)) = unset.map(|id| (id, current_key_name(kind, id))) {
            return (id != present).then(|| warning(id, &present));
        }
    }
    let key = argument.split_once('=').map_or("", |(key, _)| key);
    ResourceKind::ALL.into_iter().find_map(|kind| rename_of_old_key(kind, key)).map(Rename::warning)
}

fn warning(old: &str, new: &str) -> String {
    let removed_in = RENAMES.first().map_or("", |rename| rename.removed_in);
    format!(
        "`{old}` is the old name of `{new}` and is accepted until version {removed_in}; use `{new}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parse_from;

    fn warnings(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<OsString> = core::iter::once("suimon")
            .chain(arguments.iter().copied())
            .map(OsString::from)
            .collect();
        old_name_warnings(&crate::cli::command(), &arguments, |_| false)
    }

    fn parsed(arguments: &[&str]) -> String {
        let arguments = core::iter::once("suimon").chain(arguments.iter().copied());
        format!("{:?}", parse_from(arguments).unwrap_or_else(|error| panic!("{error}")))
    }

    /// Checks that both command lines have the same effect and that only the first results in a
    /// warning.
    fn is_accepted(old: &[&str], new: &[&str]) {
        assert_eq!(parsed(old), parsed(new), "{old:?}");
        assert_eq!(warnings(new), [""; 0], "{new:?}");
        let [warning] = &warnings(old)[..] else { panic!("{old:?}: {:?}", warnings(old)) };
        assert!(warning.contains("is the old name of"), "{warning}");
    }

    #[test]
    fn old_commands_and_options_are_accepted_with_a_warning() {
        for rename in RENAMES {
            match rename.item {
                RenamedItem::Command => is_accepted(&[rename.old, "list"], &[rename.new, "list"]),
                RenamedItem::CommandOption => {
                    let line =
                        |name| ["--node", "a:1", name, "/c", "--token-file", "/t", "host", "show"];
                    is_accepted(&line(rename.old), &line(rename.new));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn options_of_renamed_keys_are_accepted_with_a_warning() {
        let mut count = 0;
        for kind in ResourceKind::RESOURCES {
            for (old, new) in renamed_options(kind) {
                let set = |option: &str| format!("{option}=1");
                let value = if old.ends_with("authority") { "/ca.pem" } else { "1" };
                is_accepted(
                    &[kind.noun(), "set", "a", &old, value],
                    &[kind.noun(), "set", "a", &new, value],
                );
                if value == "1" {
                    is_accepted(
                        &[kind.noun(), "set", "a", &set(&old)],
                        &[kind.noun(), "set", "a", &set(&new)],
                    );
                }
                count += 1;
            }
        }
        assert!(count >= 8, "{count}");
        is_accepted(
            &["team", "set", "a", "--unset", "vmq.max_processors"],
            &["team", "set", "a", "--unset", "vmq.max_workers"],
        );
        is_accepted(
            &["vmq", "set", "wan", "max_processors=2"],
            &["vmq", "set", "wan", "max_workers=2"],
        );
    }

    #[test]
    fn every_command_with_a_renamed_option_accepts_its_old_name() {
        fn check(command: &Command, rename: &Rename) -> usize {
            let deeper: usize = command.get_subcommands().map(|sub| check(sub, rename)).sum();
            let new = rename.new.trim_start_matches('-');
            let renamed = command.get_arguments().filter(|arg| arg.get_long() == Some(new));
            let mut count = 0;
            for arg in renamed {
                let old = arg.get_all_aliases().unwrap_or_default();
                assert!(
                    old.contains(&rename.old.trim_start_matches('-')),
                    "{}",
                    command.get_name()
                );
                count += 1;
            }
            deeper + count
        }
        for rename in RENAMES.iter().filter(|rename| rename.item == RenamedItem::CommandOption) {
            assert!(check(&crate::cli::command_with_aliases(), rename) > 1, "{rename:?}");
        }
    }

    #[test]
    fn a_resource_with_an_old_name_is_no_old_name() {
        assert_eq!(warnings(&["nic", "show", "processor"]), [""; 0]);
        let old = old_name_warnings(&crate::cli::command(), &[], |name| name == "SUIMON_AUTHORITY");
        assert_eq!(old.len(), 1, "{old:?}");
    }
}
