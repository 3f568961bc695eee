//! Help for the keys of resources: meaning, form of the value, default, and effect of a change.

use suimon_contract::{Effect, Form, Key, Kind, default_text, meaning_of};

/// Returns the short help of a key: its meaning.
pub(crate) fn meaning(kind: Kind, key: &Key) -> String {
    meaning_of(kind, key.name).unwrap_or_default().trim_end_matches('.').to_owned()
}

/// Returns the long help of the option for a key of a table of this kind: meaning, value and
/// default; with `effect` also the effect of a change on a resource of kind `of`.
pub(crate) fn option(kind: Kind, key: &Key, effect: Option<(Kind, Effect)>) -> String {
    let mut facts = Vec::new();
    facts.extend(option_value(key.form).map(|value| format!("Value: {value}.")));
    facts.extend(default(kind, key));
    if let Some((of, effect)) = effect {
        facts.push(format!("Change: {}.", effect_of(effect, of)));
    }
    let meaning = meaning_of(kind, key.name).unwrap_or_default();
    if facts.is_empty() { meaning } else { format!("{meaning}\n\n{}", facts.join(" ")) }
}

/// Returns one line per key of a table of this kind for arguments `KEY=VALUE`.
pub(crate) fn settings<'k>(kind: Kind, keys: impl Iterator<Item = &'k Key>) -> String {
    let line = |key: &Key| {
        let meaning = meaning_of(kind, key.name).unwrap_or_default();
        let value = match key.form {
            Form::Flag => "`on` or `off`".to_owned(),
            form @ Form::OneOf(_) => form.describe(),
            form => option_value(form).unwrap_or_default(),
        };
        let default = default(kind, key).map(|text| format!(" {text}")).unwrap_or_default();
        format!("{}: {meaning} Value: {value}.{default}\n", key.name)
    };
    keys.map(line).collect()
}

fn default(kind: Kind, key: &Key) -> Option<String> {
    if !key.has_default {
        return None;
    }
    let text = default_text(kind, key.name)?;
    let text = match (key.form, text.as_str()) {
        (_, "[]") => "none".to_owned(),
        _ => text,
    };
    Some(format!("Default: {text}."))
}

/// Returns the form of a value on the command line; `None` for keywords, which clap lists.
fn option_value(form: Form) -> Option<String> {
    let list = |most: usize, items: &str| format!("1 to {most} {items}, separated by commas");
    Some(match form {
        Form::OneOf(_) | Form::Table(_) | Form::Tables(_) => return None,
        Form::Flag => "`true` or `false`; `true` if the option is given without a value".to_owned(),
        Form::Names { most } => list(most, "names"),
        Form::StationIps { most } => list(most, "unicast IP addresses"),
        Form::Urls { most } => list(most, "URLs"),
        Form::Accounts { most } => list(most, "names or numbers"),
        Form::DnsNames { most } => list(most, "DNS names"),
        Form::Networks { most } => list(most, "IP addresses or networks"),
        Form::Vlans => "VLANs (1 to 4094) and ranges, separated by commas, such as 10,20-29".into(),
        Form::Cpus => "CPU numbers, separated by commas, such as 2,3".to_owned(),
        form => form.describe(),
    })
}

const fn effect_of(effect: Effect, of: Kind) -> &'static str {
    match (effect, of) {
        (Effect::Live, _) => "applies at once, without interruption",
        (Effect::LiveOnTap, _) => {
            "applies at once on a TAP NIC; on a vhost-user NIC, the link is down until the VM has \
             reconnected"
        }
        (Effect::Replace, Kind::Uplink) => "reopens the device, which interrupts its traffic",
        (Effect::Replace, Kind::Nic) => {
            "replaces the port; the link is down until the VM has reconnected"
        }
        (Effect::Replace, Kind::Store) => {
            "reopens all disks of the store; their requests wait meanwhile"
        }
        (Effect::Replace, _) => {
            "reopens the disk; requests of its VM wait meanwhile, and its NBD clients are \
             disconnected"
        }
        (Effect::NextBoot, _) => "takes effect at the next start of the VM",
        (Effect::NextStart, _) => "takes effect at the next start of the daemon",
        (Effect::Identity, _) => "not possible; delete the object and add another one",
    }
}

#[cfg(test)]
mod tests {
    use suimon_contract::{Effect, Kind};

    use super::*;

    #[test]
    fn an_option_states_value_default_and_effect() {
        let key = Kind::Switch.key("ageing_s").unwrap();
        let text = option(Kind::Switch, key, Some((Kind::Switch, key.effect)));
        let (meaning, facts) = text.split_once("\n\n").unwrap();
        assert!(meaning.ends_with('.'), "{meaning}");
        assert_eq!(
            facts,
            "Value: a whole number from 10 to 1000000. Default: 300. Change: applies at once, \
             without interruption."
        );
    }

    #[test]
    fn every_key_has_a_value_or_keywords() {
        for kind in Kind::ALL {
            for key in kind.keys() {
                let has_words =
                    matches!(key.form, Form::OneOf(_) | Form::Table(_) | Form::Tables(_));
                assert_eq!(option_value(key.form).is_none(), has_words, "{}", key.name);
            }
        }
        assert!(effect_of(Effect::Replace, Kind::Disk).contains("NBD"));
    }
}
