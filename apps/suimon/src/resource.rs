//! `switch`, `uplink` and `nic`: the verbs they share.

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use suimon_client::{CapturePort, Collection};
use suimon_contract::{AddressStatus, Name, NicConfig, SwitchConfig, UplinkConfig, parse_resource};

use crate::capture::CaptureFlags;
use crate::cli::ChangeFlags;
use crate::exit::Failure;
use crate::key_flags::{KeyFlags, unset, unsettable};
use crate::output::Context;
use crate::progress::finish;
use crate::resource_tables::Shown;
use crate::table::{Table, or_dash};
use crate::units;

/// Verbs of `switch`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SwitchVerb {
    /// List all switches.
    List,
    /// Show one switch.
    Show(Named),
    /// Add a switch.
    Add(Add<SwitchConfig>),
    /// Change keys of a switch while its traffic goes on.
    Set(Set<SwitchConfig>),
    /// Delete a switch that nothing is connected to.
    Delete(Delete),
    /// List the addresses that a switch knows.
    Addresses(Named),
}

/// Verbs of `uplink`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum UplinkVerb {
    /// List all uplinks.
    List,
    /// Show one uplink.
    Show(Named),
    /// Add an uplink.
    Add(Add<UplinkConfig>),
    /// Change keys of an uplink.
    Set(Set<UplinkConfig>),
    /// Delete an uplink that no switch uses.
    Delete(Delete),
    /// Write the frames of an uplink to a pcapng file as they pass.
    Capture(CaptureFlags),
}

/// Verbs of `nic`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum NicVerb {
    /// List all NICs.
    List,
    /// Show one NIC.
    Show(Named),
    /// Add a NIC.
    Add(Add<NicConfig>),
    /// Change keys of a NIC.
    Set(Set<NicConfig>),
    /// Delete a NIC.
    Delete(Delete),
    /// Write the frames of a NIC to a pcapng file as they pass.
    Capture(CaptureFlags),
}

/// One resource.
#[derive(Clone, Debug, Args)]
pub(crate) struct Named {
    /// Its name.
    pub(crate) name: Name,
}

/// A new resource.
#[derive(Clone, Debug, Args)]
pub(crate) struct Add<R: Collection> {
    /// Its name.
    name: Name,
    #[command(flatten)]
    keys: KeyFlags<R, true>,
    #[command(flatten)]
    change: ChangeFlags,
}

/// A change of a resource.
#[derive(Clone, Debug, Args)]
pub(crate) struct Set<R: Collection> {
    /// Its name.
    name: Name,
    #[command(flatten)]
    keys: KeyFlags<R, false>,
    /// Take a key back to its default; may be given more than once.
    #[arg(long, value_name = "KEY", value_parser = unsettable(R::KIND))]
    unset: Vec<String>,
    #[command(flatten)]
    change: ChangeFlags,
}

/// The end of a resource.
#[derive(Clone, Debug, Args)]
pub(crate) struct Delete {
    /// Its name.
    name: Name,
    #[command(flatten)]
    change: ChangeFlags,
}

impl SwitchVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => list::<SwitchConfig>(context).await,
            Self::Show(named) => show::<SwitchConfig>(context, &named.name).await,
            Self::Add(add) => add.run(context).await,
            Self::Set(set) => set.run(context).await,
            Self::Delete(delete) => delete.run::<SwitchConfig>(context).await,
            Self::Addresses(named) => {
                let addresses = context.client.addresses(&named.name).await?;
                Ok(context.show(&addresses, |addresses| address_table(addresses).render())?)
            }
        }
    }
}

impl UplinkVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => list::<UplinkConfig>(context).await,
            Self::Show(named) => show::<UplinkConfig>(context, &named.name).await,
            Self::Add(add) => add.run(context).await,
            Self::Set(set) => set.run(context).await,
            Self::Delete(delete) => delete.run::<UplinkConfig>(context).await,
            Self::Capture(capture) => capture.run(context, CapturePort::Uplink).await,
        }
    }
}

impl NicVerb {
    pub(crate) async fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List => list::<NicConfig>(context).await,
            Self::Show(named) => show::<NicConfig>(context, &named.name).await,
            Self::Add(add) => add.run(context).await,
            Self::Set(set) => set.run(context).await,
            Self::Delete(delete) => delete.run::<NicConfig>(context).await,
            Self::Capture(capture) => capture.run(context, CapturePort::Nic).await,
        }
    }
}

async fn list<R: Shown>(context: &Context) -> Result<(), Failure> {
    let all = context.client.list::<R>().await?;
    Ok(context.show(&all, |all| R::table(all).render())?)
}

async fn show<R: Shown>(context: &Context, name: &Name) -> Result<(), Failure> {
    let one = context.client.show::<R>(name).await?;
    Ok(context.show(&one, |one| R::details(one))?)
}

impl<R: Collection> Add<R> {
    /// The resource that the flags describe.
    fn resource(&self) -> Result<R, Failure> {
        let mut table = self.keys.values.clone();
        table.insert("name".to_owned(), Value::from(self.name.as_str()));
        parse_resource(Value::Object(table).to_string().as_bytes()).map_err(Failure::Refused)
    }

    async fn run(self, context: &Context) -> Result<(), Failure> {
        let resource = self.resource()?;
        let outcome = context.client.create(&resource, self.change.dry_run).await?;
        finish(context, outcome, self.change).await
    }
}

impl<R: Collection> Set<R> {
    /// The merge patch that the flags describe.
    fn patch(&self) -> Result<Map<String, Value>, Failure> {
        let mut patch = self.keys.values.clone();
        for key in &self.unset {
            unset(&mut patch, key);
        }
        if patch.is_empty() {
            return Err(Failure::Usage(format!(
                "nothing to set; name a key to change, see `suimon {} set --help`",
                R::KIND.word()
            )));
        }
        Ok(patch)
    }

    async fn run(self, context: &Context) -> Result<(), Failure> {
        let patch = Value::Object(self.patch()?);
        let outcome = context.client.patch::<R>(&self.name, &patch, self.change.dry_run).await?;
        finish(context, outcome, self.change).await
    }
}

impl Delete {
    async fn run<R: Collection>(self, context: &Context) -> Result<(), Failure> {
        let outcome = context.client.delete::<R>(&self.name, self.change.dry_run).await?;
        finish(context, outcome, self.change).await
    }
}

fn address_table(addresses: &[AddressStatus]) -> Table {
    let mut table = Table::new(&["ADDRESS", ">VLAN", "PORT", ">AGE"]);
    for address in addresses {
        let age = address.age_s.map(units::age);
        table.row([
            address.mac.to_string(),
            or_dash(address.vlan),
            address.port.clone(),
            if address.fixed { "fixed".to_owned() } else { or_dash(age) },
        ]);
    }
    table
}

#[cfg(test)]
#[path = "resource_tests.rs"]
mod tests;
