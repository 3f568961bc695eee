//! Long help of one command.

use clap::Command;

/// Long help of one command.
pub(crate) struct Help {
    /// Words of the command, without `suimon`.
    pub(crate) command_path: &'static str,
    /// Complete sentences that follow the summary.
    pub(crate) text: &'static str,
    /// True if the command changes desired state, which the help then states.
    pub(crate) changes_desired_state: bool,
    /// Complete command lines.
    pub(crate) examples: &'static [&'static str],
}

/// Statement about changes of desired state, the same for every command.
const KEPT: &str = "The change is stored in the desired state and survives restarts of the \
                    daemon and of the host. Make it in the host file, too: `suimon apply` \
                    replaces the desired state with the host file. A start or reload of the \
                    daemon (`systemctl reload suimond`) does the same if the text of the host \
                    file has changed since it was last applied. `suimon export` prints the \
                    desired state as a host file.";

/// Returns the help of a command that does not change desired state.
pub(crate) const fn read_only_command(
    path: &'static str,
    text: &'static str,
    examples: &'static [&'static str],
) -> Help {
    Help { command_path: path, text, changes_desired_state: false, examples }
}

/// Returns the help of a command that changes desired state.
pub(crate) const fn state_changing_command(
    path: &'static str,
    text: &'static str,
    examples: &'static [&'static str],
) -> Help {
    Help { command_path: path, text, changes_desired_state: true, examples }
}

impl Help {
    pub(crate) fn apply_to(&self, command: Command) -> Command {
        let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
        let mut text = format!("{summary}.\n\n{}", self.text);
        if self.changes_desired_state {
            text.push_str("\n\n");
            text.push_str(KEPT);
        }
        let title = if self.examples.len() == 1 { "Example" } else { "Examples" };
        let examples: String =
            self.examples.iter().map(|example| format!("  {example}\n")).collect();
        command.long_about(text).after_long_help(format!("{title}:\n{examples}"))
    }
}
