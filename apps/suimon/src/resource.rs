//! Commands of `switch`, `nic`, `disk` and other resources: verbs common to every kind.

use core::convert::Infallible;
use core::marker::PhantomData;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use suimon_client::{CapturablePort, ChangeOptions};
use suimon_contract::{
    Name, NicConfig, NodeConfig, PfConfig, SwitchConfig, TeamConfig, UplinkConfig, parse_resource,
};
use suimon_tables::resource_tables::address_table;

use crate::capture::CaptureFlags;
use crate::change_flags::ChangeFlags;
use crate::exit::Failure;
use crate::key_flags::{KeyFlags, unset, unset_parser};
use crate::kind_specific_verb::KindSpecificVerb;
use crate::node_drain::NodeSpecificVerb;
use crate::output::Context;
use crate::progress::print_outcome;
use crate::resource_help::{ResourceHelp, name_help, with_article};
use crate::storage_flags::{CreateImageFlag, ForceFlag, WithFileFlag};

/// Verbs common to every kind of resource, and verbs specific to one.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ResourceVerb<R: ResourceHelp, Own: Subcommand> {
    #[command(about = format!("List all {} with their state", R::PLURAL))]
    List,
    #[command(about = format!("Show the keys and state of {}", with_article(R::NOUN)))]
    Show(NameArgument<R>),
    #[command(about = format!("Add {}", with_article(R::NOUN)), visible_alias = "create")]
    Add(AddFlags<R>),
    #[command(about = R::ABOUT_SET)]
    Set(SetFlags<R>),
    #[command(about = R::ABOUT_DELETE)]
    Delete(DeleteFlags<R>),
    #[command(flatten)]
    Own(Own),
}

/// Verbs of `switch`.
pub(crate) type SwitchVerb = ResourceVerb<SwitchConfig, SwitchSpecificVerb>;
/// Verbs of `uplink`.
pub(crate) type UplinkVerb = ResourceVerb<UplinkConfig, CaptureVerb<UplinkConfig>>;
/// Verbs of `team`, without specific ones.
pub(crate) type TeamVerb = ResourceVerb<TeamConfig, Infallible>;
/// Verbs of `pf`, without specific ones. `vf` changes virtual functions.
pub(crate) type PfVerb = ResourceVerb<PfConfig, Infallible>;
/// Verbs of `node`.
pub(crate) type NodeVerb = ResourceVerb<NodeConfig, NodeSpecificVerb>;
/// Verbs of `nic`.
pub(crate) type NicVerb = ResourceVerb<NicConfig, CaptureVerb<NicConfig>>;

/// Verbs that only switches have.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SwitchSpecificVerb {
    /// List the MAC addresses in the forwarding table of a switch.
    Addresses(NameArgument<SwitchConfig>),
}

/// Verbs that only ports (NICs and uplinks) have.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CaptureVerb<R: ResourceHelp> {
    #[command(about = format!(
        "Capture the frames of {} to a pcapng file",
        with_article(R::NOUN)
    ))]
    Capture(CaptureFlags<R>),
}

/// Argument that names a resource of one kind.
#[derive(Clone, Debug, Args)]
pub(crate) struct NameArgument<R: ResourceHelp> {
    #[arg(skip)]
    of: PhantomData<fn() -> R>,
    #[arg(help = name_help(R::NOUN))]
    pub(crate) name: Name,
}

/// Arguments of `add`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AddFlags<R: ResourceHelp> {
    #[arg(help = format!("{}, 1 to 63 letters, digits, `-`, `_` and `.`", name_help(R::NOUN)))]
    name: Name,
    #[command(flatten)]
    keys: KeyFlags<R, true>,
    #[command(flatten)]
    force: ForceFlag<R>,
    #[command(flatten)]
    change: ChangeFlags,
}

/// Arguments of `set`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SetFlags<R: ResourceHelp> {
    #[arg(help = name_help(R::NOUN))]
    name: Name,
    #[command(flatten)]
    keys: KeyFlags<R, false>,
    /// Remove a key from desired state, so that its default applies; may be given several times.
    #[arg(long, value_name = "KEY", value_parser = unset_parser(R::KIND))]
    unset: Vec<String>,
    #[command(flatten)]
    create_image: CreateImageFlag<R>,
    #[command(flatten)]
    force: ForceFlag<R>,
    #[command(flatten)]
    change: ChangeFlags,
}

/// Arguments of `delete`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeleteFlags<R: ResourceHelp> {
    #[arg(help = name_help(R::NOUN))]
    name: Name,
    #[command(flatten)]
    with_file: WithFileFlag<R>,
    #[command(flatten)]
    change: ChangeFlags,
}

impl<R: ResourceHelp, Own: KindSpecificVerb> ResourceVerb<R, Own> {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => list::<R>(context).await,
            Self::Show(flags) => show::<R>(context, &flags.name).await,
            Self::Add(add) => add.run(context).await,
            Self::Set(set) => set.run(context).await,
            Self::Delete(delete) => delete.run(context).await,
            Self::Own(own_verb) => own_verb.run(context).await,
        }
    }
}

impl KindSpecificVerb for SwitchSpecificVerb {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Addresses(NameArgument { name, .. }) = self;
        let addresses = context.client.addresses(&name).await?;
        Ok(context.show(&addresses, |addresses| address_table(addresses).render())?)
    }
}

impl<R: ResourceHelp + CapturablePort> KindSpecificVerb for CaptureVerb<R> {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let Self::Capture(flags) = self;
        flags.run(context).await
    }
}

async fn list<R: ResourceHelp>(context: &Context) -> Result<(), Failure> {
    let resources = context.client.list::<R>().await?;
    Ok(context.show(&resources, |resources| R::table(resources).render())?)
}

async fn show<R: ResourceHelp>(context: &Context, name: &Name) -> Result<(), Failure> {
    let resource = context.client.show::<R>(name).await?;
    Ok(context.show(&resource, |resource| R::details(resource))?)
}

impl<R: ResourceHelp> AddFlags<R> {
    /// Returns the resource described by the flags.
    fn resource(&self) -> Result<R, Failure> {
        let mut table = self.keys.values.clone();
        table.insert("name".to_owned(), Value::from(self.name.as_str()));
        parse_resource(Value::Object(table).to_string().as_bytes()).map_err(Failure::Refused)
    }

    async fn run(self, context: &Context) -> Result<(), Failure> {
        let resource = self.resource()?;
        let options = ChangeOptions { force: self.force.is_given(), ..self.change.options() };
        let outcome = context.client.create(&resource, options).await?;
        print_outcome(context, outcome, self.change).await
    }
}

impl<R: ResourceHelp> SetFlags<R> {
    /// Returns the merge patch described by the flags.
    fn patch(&self) -> Result<Map<String, Value>, Failure> {
        let mut patch = self.keys.values.clone();
        for key in &self.unset {
            unset(&mut patch, key);
        }
        if patch.is_empty() && !self.create_image.is_given() {
            return Err(Failure::Usage(format!(
                "no key is given; give an option for each key to change, see `suimon {} set --help`",
                R::KIND.command_words()
            )));
        }
        Ok(patch)
    }

    async fn run(self, context: &Context) -> Result<(), Failure> {
        let patch = Value::Object(self.patch()?);
        let options = ChangeOptions {
            force: self.force.is_given(),
            create_image: self.create_image.is_given(),
            ..self.change.options()
        };
        let outcome = context.client.patch::<R>(&self.name, &patch, options).await?;
        print_outcome(context, outcome, self.change).await
    }
}

impl<R: ResourceHelp> DeleteFlags<R> {
    async fn run(self, context: &Context) -> Result<(), Failure> {
        let options = ChangeOptions {
            deletes_image_files: self.with_file.is_given(),
            ..self.change.options()
        };
        let outcome = context.client.delete::<R>(&self.name, options).await?;
        print_outcome(context, outcome, self.change).await
    }
}

#[cfg(test)]
#[path = "resource_tests.rs"]
mod tests;
