//! Help for the keys of resources: meaning, form of the value, default, and effect of a change.

use suimon_contract::{ChangeEffect, Form, Key, ResourceKind, default_text, key_meaning};

/// Returns the long help of the option for a key of a table of this kind: meaning, value and
/// default; with `effect` also an interruption that a change of the value causes on a resource of
/// kind `of`. A change without interruption is described by the command.
pub(crate) fn option_help(
    kind: ResourceKind,
    key: &Key,
    meaning: &str,
    effect: Option<(ResourceKind, ChangeEffect)>,
) -> String {
    let mut sentences = Vec::new();
    sentences.extend(option_value(key.form).map(|value| format!("Value: {value}.")));
    sentences.extend(default(kind, key));
    if let Some(effect) = effect.and_then(|(kind, effect)| effect_of(effect, kind)) {
        sentences.push(format!("Change: {effect}."));
    }
    if sentences.is_empty() {
        return meaning.trim_end_matches('.').to_owned();
    }
    format!("{meaning}\n\n{}", sentences.join(" "))
}

/// Returns one line per key of a table of this kind for arguments `KEY=VALUE`.
pub(crate) fn settings_help<'k>(kind: ResourceKind, keys: impl Iterator<Item = &'k Key>) -> String {
    let line = |key: &Key| {
        let meaning = key_meaning(kind, key.name).unwrap_or_default();
        let value = match key.form {
            Form::Flag => "`on` or `off`".to_owned(),
            form => option_value(form).unwrap_or_else(|| form.describe()),
        };
        let default = match (key.form, default(kind, key)) {
            (_, None) => String::new(),
            (Form::Flag, Some(text)) if text.contains("true") => " Default: on.".to_owned(),
            (Form::Flag, Some(_)) => " Default: off.".to_owned(),
            (_, Some(text)) => format!(" {text}"),
        };
        format!("{}: {meaning} Value: {value}.{default}\n", key.name)
    };
    keys.map(line).collect()
}

fn default(kind: ResourceKind, key: &Key) -> Option<String> {
    if !key.has_default {
        return None;
    }
    let text = default_text(kind, key.name).filter(|text| text != "–")?;
    let text = if text == "[]" { "none".to_owned() } else { text };
    Some(format!("Default: {text}."))
}

/// Returns the form of a value on the command line; `None` for keywords, which clap lists, for
/// flags, whose placeholder states it, and for names of resources.
fn option_value(form: Form) -> Option<String> {
    let list = |max: usize, items: &str| format!("1 to {max} {items}, separated by commas");
    Some(match form {
        Form::OneOfKeywords(_) | Form::Flag | Form::Name | Form::Table(_) | Form::Tables(_) => {
            return None;
        }
        Form::Names { max } => list(max, "names"),
        Form::UnicastIps { max } => list(max, "unicast IP addresses"),
        Form::Urls { max } => list(max, "URLs"),
        Form::Accounts { max } => list(max, "names or numbers"),
        Form::DnsNames { max } => list(max, "DNS names"),
        Form::IpNetworks { max } => list(max, "IP addresses or networks"),
        Form::Vlans => "VLANs (1 to 4094) and ranges, separated by commas, such as 10,20-29".into(),
        Form::Cpus => "CPU numbers, separated by commas, such as 2,3".to_owned(),
        form => form.describe(),
    })
}

/// Returns the interruption by a change; `None` if the change applies at once without one.
const fn effect_of(effect: ChangeEffect, kind: ResourceKind) -> Option<&'static str> {
    Some(match (effect, kind) {
        (ChangeEffect::Live, _) => return None,
        (ChangeEffect::LiveOnTap, _) => {
            "applies at once on a TAP or legacy NIC; on a vhost-user NIC, the link is down until the \
             VM has reconnected"
        }
        (ChangeEffect::Replace, ResourceKind::Uplink) => {
            "reopens the device, which interrupts its traffic"
        }
        (ChangeEffect::Replace, ResourceKind::Nic) => {
            "reopens the port, which interrupts its traffic; a VM reconnects by itself"
        }
        (ChangeEffect::Replace, ResourceKind::Store) => {
            "reopens all disks of the store; requests of their VMs are queued meanwhile, and their \
             NBD clients are disconnected"
        }
        (ChangeEffect::Replace, _) => {
            "reopens the disk; requests of its VM are queued meanwhile, and its NBD clients are \
             disconnected"
        }
        (ChangeEffect::NextVmStart, _) => "takes effect at the next start of the VM",
        (ChangeEffect::NextDaemonStart, _) => "takes effect at the next start of the daemon",
        (ChangeEffect::Identity, _) => "not possible; delete the object and add another one",
        (ChangeEffect::AfterLeavingCluster, _) => {
            "not possible while the host is in the cluster; run `suimon cluster leave` first"
        }
    })
}

#[cfg(test)]
mod tests {
    use suimon_contract::{ChangeEffect, ResourceKind};

    use super::{effect_of, option_help, settings_help};

    #[test]
    fn an_option_states_value_default_and_interruption() {
        let help_of = |kind: ResourceKind, name| {
            let key = kind.key(name).unwrap();
            let text = option_help(kind, key, "Meaning.", Some((kind, key.effect)));
            text.strip_prefix("Meaning.\n\n").unwrap().to_owned()
        };
        let ageing = help_of(ResourceKind::Switch, "ageing_s");
        assert_eq!(ageing, "Value: a whole number from 10 to 1000000. Default: 300.");
        let queues = help_of(ResourceKind::Uplink, "queues");
        assert!(queues.ends_with("Change: reopens the device, which interrupts its traffic."));
        let memory = help_of(ResourceKind::Vm, "memory_bytes");
        assert!(memory.ends_with("Change: takes effect at the next start of the VM."), "{memory}");
    }

    #[test]
    fn only_changes_without_interruption_have_no_text() {
        for kind in ResourceKind::RESOURCES {
            for key in kind.keys() {
                let is_live = key.effect == ChangeEffect::Live;
                assert_eq!(effect_of(key.effect, kind).is_none(), is_live, "{}", key.name);
            }
        }
    }

    #[test]
    fn settings_have_a_line_per_key_with_value_and_default() {
        let text = settings_help(ResourceKind::Offload, ResourceKind::Offload.keys().iter());
        assert_eq!(text.lines().count(), ResourceKind::Offload.keys().len());
        for line in text.lines() {
            assert!(line.ends_with(" Value: `on` or `off`. Default: on."), "{line}");
        }
        let vmq = settings_help(ResourceKind::Vmq, ResourceKind::Vmq.keys().iter());
        assert!(vmq.contains(" Value: a whole number from 1 to 64. Default: 4."), "{vmq}");
        assert!(vmq.contains(" Value: one of `static`, `dynamic`. Default: dynamic."), "{vmq}");
    }
}
