//! Flags that only changes of stores, disks and QoS policies have.

use core::marker::PhantomData;

use clap::{Arg, ArgAction, ArgMatches, Command};
use suimon_contract::{Kind, Resource};

/// A flag that some kinds of resources have and others have not.
pub(crate) trait KindFlag {
    /// As it is written.
    const LONG: &'static str;

    /// What it does.
    const HELP: &'static str;

    /// Whether this kind has it.
    fn applies_to(kind: Kind) -> bool;
}

/// `--force`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Force;

impl KindFlag for Force {
    const LONG: &'static str = "force";
    const HELP: &'static str = "Promise more minimums than the store can keep";

    fn applies_to(kind: Kind) -> bool {
        matches!(kind, Kind::Store | Kind::QosPolicy | Kind::Disk)
    }
}

/// `--with-file`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithFile;

impl KindFlag for WithFile {
    const LONG: &'static str = "with-file";
    const HELP: &'static str = "Delete its file, too, with all that is in it";

    fn applies_to(kind: Kind) -> bool {
        kind == Kind::Disk
    }
}

/// The flag of a kind of resource that has it, nothing for others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlagOf<R, F> {
    is_given: bool,
    of: PhantomData<fn() -> (R, F)>,
}

/// `--force`, where minimums are promised.
pub(crate) type ForceFlag<R> = FlagOf<R, Force>;
/// `--with-file`, where there is one.
pub(crate) type DeleteFlag<R> = FlagOf<R, WithFile>;

impl<R, F> FlagOf<R, F> {
    /// Whether it stands on the command line.
    pub(crate) const fn is_given(&self) -> bool {
        self.is_given
    }
}

impl<R: Resource, F: KindFlag> clap::Args for FlagOf<R, F> {
    fn augment_args(command: Command) -> Command {
        if !F::applies_to(R::KIND) {
            return command;
        }
        let flag = Arg::new(F::LONG).long(F::LONG).help(F::HELP).action(ArgAction::SetTrue);
        command.arg(flag)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<R: Resource, F: KindFlag> clap::FromArgMatches for FlagOf<R, F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given = F::applies_to(R::KIND) && matches.get_flag(F::LONG);
        Ok(Self { is_given, of: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
