use super::*;
use crate::cli;

/// Longest example that fits a line of help with its indentation.
const EXAMPLE_MAX: usize = 94;

/// Returns all visible commands below `suimon` with their words.
fn commands() -> Vec<(String, Command)> {
    fn collect(command: &Command, path: &str, commands: &mut Vec<(String, Command)>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
            commands.push((path.clone(), sub.clone()));
            collect(sub, &path, commands);
        }
    }
    let mut commands = Vec::new();
    collect(&cli::command(), "", &mut commands);
    commands
}

#[test]
fn every_command_has_long_help_and_a_valid_example() {
    let mut definition = cli::command_with_aliases();
    for (path, command) in commands() {
        let help = find(&path).unwrap_or_else(|| panic!("no help of `{path}`"));
        let start = if command.has_subcommands() { "suimon".to_owned() } else { path.clone() };
        assert!(help.text.ends_with('.'), "{path}: {}", help.text);
        assert!(!help.examples.is_empty(), "{path} has no example");
        for example in help.examples {
            assert!(example.len() <= EXAMPLE_MAX, "{example}");
            assert!(
                example.starts_with("suimon ") && example.contains(&start),
                "{path}: {example}"
            );
            if let Err(error) = definition.try_get_matches_from_mut(example.split(' ')) {
                panic!("{example}: {error}");
            }
        }
    }
}

#[test]
fn every_help_belongs_to_one_command() {
    let paths: Vec<String> = commands().into_iter().map(|(path, _)| path).collect();
    for help in ALL.iter().copied().flatten() {
        assert!(
            paths.iter().any(|path| path == help.command_path),
            "no command `{}`",
            help.command_path
        );
        let count = ALL
            .iter()
            .copied()
            .flatten()
            .filter(|other_help| other_help.command_path == help.command_path)
            .count();
        assert_eq!(count, 1, "`{}` has two texts", help.command_path);
    }
}

#[test]
fn commands_that_change_desired_state_state_how_long_the_change_lasts() {
    for (path, command) in commands() {
        let has_plan = command.get_arguments().any(|arg| arg.get_long() == Some("dry-run"));
        let changes_desired_state = find(&path).is_some_and(|help| help.changes_desired_state);
        // Commands with a plan but without a lasting change of desired state by the caller.
        let others = ["apply", "image repair", "image relink", "vm migrate", "node drain"];
        assert_eq!(changes_desired_state, has_plan && !others.contains(&path.as_str()), "{path}");
    }
}

#[test]
fn summaries_begin_with_a_verb_and_are_one_sentence() {
    const VERBS: [&str; 43] = [
        "Add",
        "Adopt",
        "Cancel",
        "Change",
        "Check",
        "Compact",
        "Compute",
        "Configure",
        "Connect",
        "Convert",
        "Copy",
        "Create",
        "Delete",
        "Drain",
        "End",
        "Enlarge",
        "Explain",
        "Freeze",
        "Inspect",
        "Join",
        "Kill",
        "Leave",
        "List",
        "Log",
        "Manage",
        "Measure",
        "Merge",
        "Migrate",
        "Move",
        "Pause",
        "Print",
        "Record",
        "Remove",
        "Reopen",
        "Repair",
        "Replace",
        "Reset",
        "Resume",
        "Run",
        "Set",
        "Show",
        "Start",
        "Write",
    ];
    const MORE: [&str; 4] = ["Capture", "Stop", "Thaw", "Wait"];
    for (path, command) in commands() {
        let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
        let first = summary.split([' ', ',']).next().unwrap_or_default();
        assert!(VERBS.contains(&first) || MORE.contains(&first), "{path}: {summary}");
        assert!(!summary.contains(". ") && !summary.ends_with('.'), "{path}: {summary}");
    }
}

#[test]
fn options_are_described() {
    for (path, command) in commands() {
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.len() > 8, "{path}: {}: `{help}`", arg.get_id());
        }
    }
}
