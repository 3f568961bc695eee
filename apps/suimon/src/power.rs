//! Commands of `power`: power plan of the host, settings in effect, and energy.

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use suimon_contract::{PowerConfig, ResourceKind};
use suimon_tables::power_tables::details;

use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::output::Context;
use crate::progress::print_outcome;
use crate::settings::{self, Setting};

/// Verbs of `power`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PowerVerb {
    /// Show the power plan, whether each CPU setting is in effect, and power in watts.
    Show,
    /// Set the power plan, or change keys of the present one.
    Set(SetFlags),
    /// Remove the power plan and restore the former CPU settings.
    Unset(ChangeFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SetFlags {
    #[arg(
        value_name = "PLAN|KEY=VALUE|KEY=default",
        required = true,
        value_parser = setting_or_plan,
        help = settings_help(),
        long_help = settings::long_help(&settings_help(), &[ResourceKind::Power])
    )]
    settings: Vec<Setting>,
    #[command(flatten)]
    change: ChangeFlags,
}

/// Parses `KEY=VALUE`, or a power plan's name, which stands for `plan=NAME`.
fn setting_or_plan(text: &str) -> Result<Setting, String> {
    let parse = |text: &str| settings::parse(ResourceKind::Power, text);
    if text.contains('=') {
        return parse(text);
    }
    parse(&format!("plan={text}")).map_err(|_| {
        format!(
            "`{text}` is neither a plan (balanced, high-performance, power-saver, custom) nor \
             KEY=VALUE; the keys are {}",
            settings::key_names(ResourceKind::Power)
        )
    })
}

fn settings_help() -> String {
    format!(
        "Plan (`balanced`, `high-performance`, `power-saver` or `custom`) and keys that take \
         precedence over it, such as `turbo=on`. With a plan, keys that are not given have the \
         values of the plan; without one, only the given keys change. `KEY=default` removes a key. \
         The keys are {}",
        settings::key_names(ResourceKind::Power)
    )
}

impl PowerVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Show => Ok(context.show(&context.client.power().await?, details)?),
            Self::Set(flags) => flags.run(context).await,
            Self::Unset(change) => {
                let outcome = context.client.delete_power(change.options()).await?;
                print_outcome(context, outcome, change).await
            }
        }
    }
}

impl SetFlags {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let table = settings::merge_patch(&self.settings)?;
        let options = self.change.options();
        let outcome = match power_config(&table)? {
            Some(power) => context.client.replace_power(&power, options).await?,
            None => context.client.patch_power(&Value::Object(table), options).await?,
        };
        print_outcome(context, outcome, self.change).await
    }
}

/// Returns the whole power configuration if the settings name a plan; `None` if they only change
/// keys.
fn power_config(table: &Map<String, Value>) -> Result<Option<PowerConfig>, Failure> {
    if table.get("plan").is_none_or(Value::is_null) {
        return Ok(None);
    }
    serde_json::from_value(Value::Object(table.clone()))
        .map(Some)
        .map_err(|error| Failure::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_replaces_and_keys_alone_change() {
        let read = |arguments: &[&str]| {
            let settings: Result<Vec<Setting>, String> =
                arguments.iter().map(|argument| setting_or_plan(argument)).collect();
            settings::merge_patch(&settings.unwrap()).unwrap()
        };
        let table = read(&["balanced", "turbo=on", "performance_percent_min=100"]);
        let power = power_config(&table).unwrap().unwrap();
        assert_eq!(power.plan.as_str(), "balanced");
        assert_eq!((power.turbo, power.performance_percent_min), (Some(true), Some(100)));
        let table = read(&["turbo=default", "poll_us=7"]);
        assert!(power_config(&table).unwrap().is_none());
        assert_eq!(table["turbo"], Value::Null);
        assert!(setting_or_plan("fast").unwrap_err().contains("power-saver"));
        assert!(setting_or_plan("poll_us=10001").unwrap_err().contains("10000"));
    }
}
