//! Flags for the keys of resources, generated from the table of keys, so that the command line
//! supports every key of the host file.

use core::marker::PhantomData;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command};
use serde_json::{Map, Value};
use suimon_contract::{
    ChangeEffect, Form, Key, Resource, ResourceKind, key_meaning, rename_of_new_key,
};

use crate::key_help;

/// Keys of a resource, given as flags: of a new resource if `ADDING`, otherwise of a change.
#[derive(Clone, Debug)]
pub(crate) struct KeyFlags<R, const ADDING: bool> {
    /// Values as a JSON object for a request body.
    pub(crate) values: Map<String, Value>,
    marker: PhantomData<fn() -> R>,
}

/// Flag for a key of a resource, or for a key of a table inside the resource.
struct Flag {
    table: Option<&'static Key>,
    kind: ResourceKind,
    key: &'static Key,
}

impl Flag {
    fn id(&self) -> String {
        match self.table {
            Some(table) => format!("{}.{}", table.name, self.key.name),
            None => self.key.name.to_owned(),
        }
    }

    /// Returns the option with the key's old name, if it was renamed.
    fn old_option(&self) -> Option<String> {
        let old = rename_of_new_key(self.kind, self.key.name)?.old;
        let id = self.table.map_or(old.to_owned(), |table| format!("{}.{old}", table.name));
        Some(option(&id))
    }

    /// Returns when a change of this key applies, and whether it interrupts traffic. Keys of a
    /// nested table have the effect of the table's own key.
    fn effect(&self) -> ChangeEffect {
        self.table.map_or(self.key.effect, |table| table.effect)
    }

    fn arg(&self, kind: ResourceKind, adding: bool) -> Arg {
        let option_name = self.id().replace(['_', '.'], "-");
        let effect = (!adding).then(|| (kind, self.effect()));
        let meaning = key_meaning(self.kind, self.key.name).unwrap_or_default();
        let arg = Arg::new(self.id())
            .aliases(self.old_option().map(|old| old.trim_start_matches('-').to_owned()))
            .long(option_name)
            .help(meaning.trim_end_matches('.').to_owned())
            .long_help(key_help::option_help(self.kind, self.key, &meaning, effect))
            .value_name(value_name(self.key))
            .value_parser(value_parser(self.key.form))
            // An optional table's required keys are optional flags.
            .required(adding && self.key.required && self.table.is_none());
        match self.key.form {
            Form::Flag => arg
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .hide_possible_values(true),
            _ => arg,
        }
    }
}

/// Returns the flags of a kind of resource. The name is a positional argument instead.
fn flags(kind: ResourceKind) -> Vec<Flag> {
    let mut flags = Vec::new();
    for key in kind.keys().iter().filter(|key| key.name != "name") {
        match key.form {
            Form::Table(inner) => flags.extend(inner.keys().iter().map(|inner_key| Flag {
                table: Some(key),
                kind: inner,
                key: inner_key,
            })),
            // Arrays of tables have verbs of their own.
            Form::Tables(_) => {}
            _ => flags.push(Flag { table: None, kind, key }),
        }
    }
    flags
}

/// Returns the option of a key, such as `--vmq-max-workers` for `vmq.max_workers`.
fn option(id: &str) -> String {
    format!("--{}", id.replace(['_', '.'], "-"))
}

/// Returns the old options of renamed keys of this kind of resource, as pairs (old option, new
/// option).
pub(crate) fn renamed_options(kind: ResourceKind) -> Vec<(String, String)> {
    let flags = flags(kind).into_iter();
    flags.filter_map(|flag| Some((flag.old_option()?, option(&flag.id())))).collect()
}

/// Returns the current id of a key that is given by its old or current name: `vmq.max_workers` for
/// `vmq.max_processors`.
pub(crate) fn current_key_name(kind: ResourceKind, id: &str) -> String {
    let is_flag = |flag: &Flag| {
        let old = rename_of_new_key(flag.kind, flag.key.name).map(|rename| rename.old);
        match (flag.table, old) {
            (Some(table), Some(old)) => id == format!("{}.{old}", table.name),
            (None, Some(old)) => id == old,
            (_, None) => false,
        }
    };
    flags(kind).iter().find(|flag| is_flag(flag)).map_or_else(|| id.to_owned(), Flag::id)
}

/// Returns the parser of `--unset`: names of optional keys and tables. Old names are accepted.
pub(crate) fn unset_parser(kind: ResourceKind) -> ValueParser {
    let names = unsettable(kind).into_iter().map(|id| {
        let old = flags(kind).into_iter().find(|flag| flag.id() == id).and_then(|flag| {
            let old = rename_of_new_key(flag.kind, flag.key.name)?.old;
            Some(flag.table.map_or(old.to_owned(), |table| format!("{}.{old}", table.name)))
        });
        PossibleValue::new(id).aliases(old)
    });
    PossibleValuesParser::new(names).map(move |id| current_key_name(kind, &id)).into()
}

/// Returns the names accepted by `--unset`: all optional keys and tables.
fn unsettable(kind: ResourceKind) -> Vec<String> {
    let is_table = |key: &&Key| matches!(key.form, Form::Table(_)) && !key.required;
    let tables = kind.keys().iter().filter(is_table).map(|key| key.name.to_owned());
    let keys = flags(kind).into_iter().filter(|flag| !flag.key.required);
    keys.map(|flag| flag.id()).chain(tables).collect()
}

/// Marks a key as removed in a merge patch.
pub(crate) fn unset(patch: &mut Map<String, Value>, id: &str) {
    insert(patch, id, Value::Null);
}

fn insert(table: &mut Map<String, Value>, id: &str, value: Value) {
    match id.split_once('.') {
        None => {
            table.insert(id.to_owned(), value);
        }
        Some((outer, inner)) => {
            let slot = table.entry(outer).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(slot) = slot {
                slot.insert(inner.to_owned(), value);
            }
        }
    }
}

/// Returns the placeholder of a value in help texts: the unit from the end of the key's name, or a
/// word for the form.
fn value_name(key: &Key) -> String {
    let unit = match key.name.rsplit_once('_').map_or(key.name, |(_, unit)| unit) {
        "s" => "SECONDS",
        "bps" => "BIT/S",
        "fps" => "FRAMES/S",
        "iops" => "IOPS",
        "percent" => "PERCENT",
        "mtu" | "sector" => "BYTES",
        _ => "NUMBER",
    };
    match key.form {
        Form::Number { .. } | Form::OneOfNumbers(_) => unit.to_owned(),
        Form::NumberOrKeyword { keyword, .. } => format!("{unit}|{keyword}"),
        Form::OneOfKeywords(_) => key.name.replace('_', "-").to_uppercase(),
        form => form_name(form).to_owned(),
    }
}

const fn form_name(form: Form) -> &'static str {
    match form {
        Form::Name | Form::HostName | Form::DnsName => "NAME",
        Form::Names { .. } => "NAME,…",
        Form::NetworkDevice => "DEVICE",
        Form::Adapter => "DEVICE|ADDRESS",
        Form::NetworkNamespace => "NETNS",
        Form::UnixSocketPath | Form::FilePath => "PATH",
        Form::StoreFile => "FILE",
        Form::Serial { .. } | Form::SingleLineText { .. } => "TEXT",
        Form::Bytes { .. } => "SIZE",
        Form::SocketAddress | Form::LoopbackAddress => "ADDRESS",
        Form::HostAndPort => "HOST:PORT",
        Form::UnicastIps { .. } => "ADDRESS,…",
        Form::Urls { .. } => "URL,…",
        Form::IpNetworks { .. } => "NETWORK,…",
        Form::Accounts { .. } | Form::DnsNames { .. } => "NAME,…",
        Form::UnicastMac => "MAC",
        Form::Vlan => "VLAN",
        Form::Vlans => "VLAN,FIRST-LAST,…",
        Form::Cpus => "CPU,…",
        Form::Number { .. } | Form::OneOfNumbers(_) | Form::NumberOrKeyword { .. } => "NUMBER",
        Form::Flag => "true|false",
        Form::OneOfKeywords(_) => "KEYWORD",
        Form::Table(_) | Form::Tables(_) => "TABLE",
    }
}

fn value_parser(form: Form) -> ValueParser {
    match form {
        Form::OneOfKeywords(values) => PossibleValuesParser::new(values).map(Value::from).into(),
        // `on` and `off`, as in arguments KEY=VALUE, are accepted, too.
        Form::Flag => PossibleValuesParser::new([
            PossibleValue::new("true").alias("on"),
            PossibleValue::new("false").alias("off"),
        ])
        .map(|value| Value::from(value == "true" || value == "on"))
        .into(),
        _ => ValueParser::new(move |text: &str| -> Result<Value, String> {
            let value = parse_value(form, text);
            if form.accepts(&value) {
                Ok(value)
            } else {
                Err(format!("must be {}", form.describe()))
            }
        }),
    }
}

/// Converts a text to a value of the form's type.
pub(crate) fn parse_value(form: Form, text: &str) -> Value {
    let number_or_text =
        |text: &str| text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from);
    match form {
        Form::Number { .. }
        | Form::NumberOrKeyword { .. }
        | Form::OneOfNumbers(_)
        | Form::Bytes { .. }
        | Form::Vlan => number_or_text(text.trim()),
        Form::Vlans | Form::Cpus => {
            text.split(',').map(|item| number_or_text(item.trim())).collect()
        }
        Form::Names { .. }
        | Form::UnicastIps { .. }
        | Form::Urls { .. }
        | Form::Accounts { .. }
        | Form::DnsNames { .. }
        | Form::IpNetworks { .. } => text.split(',').map(|item| Value::from(item.trim())).collect(),
        _ => Value::from(text),
    }
}

impl<R: Resource, const ADDING: bool> clap::Args for KeyFlags<R, ADDING> {
    fn augment_args(command: Command) -> Command {
        command.args(flags(R::KIND).iter().map(|flag| flag.arg(R::KIND, ADDING)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<R: Resource, const ADDING: bool> clap::FromArgMatches for KeyFlags<R, ADDING> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut values = Map::new();
        for id in flags(R::KIND).iter().map(Flag::id) {
            let value = matches.try_get_one::<Value>(&id).map_err(|error| {
                clap::Error::raw(ErrorKind::InvalidValue, format!("{id}: {error}\n"))
            })?;
            if let Some(value) = value {
                insert(&mut values, &id, value.clone());
            }
        }
        Ok(Self { values, marker: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
