//! Flags specific to changes of stores, disks and QoS policies.

use core::marker::PhantomData;

use clap::{Arg, ArgAction, ArgMatches, Command};
use suimon_contract::{Resource, ResourceKind};

/// Flag that applies to some kinds of resource only.
pub(crate) trait KindFlag {
    /// Long name of the flag.
    const LONG_NAME: &'static str;

    /// Returns the help text of the flag.
    fn help(kind: ResourceKind) -> &'static str;

    /// Returns true if the flag applies to the kind.
    fn applies_to(kind: ResourceKind) -> bool;
}

/// Flag `--force`: accept minimums above the capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Force;

impl KindFlag for Force {
    const LONG_NAME: &'static str = "force";
    fn help(kind: ResourceKind) -> &'static str {
        match kind {
            ResourceKind::Store => {
                "With `set`: accept that the minimums of the store's disks exceed 90 % of its \
                 capacity, or that its capacity becomes unknown, and permit `--shared=false` while \
                 disks are in the store, whose IOPS the cluster then does not limit. No effect on a \
                 store without disks"
            }
            _ => {
                "Accept minimums that exceed 90 % of the capacity of the store, or on a store of \
                 unknown capacity"
            }
        }
    }

    fn applies_to(kind: ResourceKind) -> bool {
        matches!(kind, ResourceKind::Store | ResourceKind::QosPolicy | ResourceKind::Disk)
    }
}

/// Flag `--with-file`: delete the image file as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithFile;

impl KindFlag for WithFile {
    const LONG_NAME: &'static str = "with-file";
    fn help(_: ResourceKind) -> &'static str {
        "Delete the image file with its data, too"
    }

    fn applies_to(kind: ResourceKind) -> bool {
        kind == ResourceKind::Disk
    }
}

/// Flag `--create-image`: create a missing image file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateImage;

impl KindFlag for CreateImage {
    const LONG_NAME: &'static str = "create-image";
    fn help(_: ResourceKind) -> &'static str {
        "Create the image file if it is missing: an empty image, or a child of the parent"
    }

    fn applies_to(kind: ResourceKind) -> bool {
        kind == ResourceKind::Disk
    }
}

/// Flag `F` of commands about resources `R`. It does not exist for kinds to which `F` does not
/// apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceFlag<R, F> {
    is_given: bool,
    marker: PhantomData<fn() -> (R, F)>,
}

/// Flag `--force`, for resources with minimums.
pub(crate) type ForceFlag<R> = ResourceFlag<R, Force>;
/// Flag `--with-file`, for resources with files.
pub(crate) type WithFileFlag<R> = ResourceFlag<R, WithFile>;
/// Flag `--create-image`, for disks.
pub(crate) type CreateImageFlag<R> = ResourceFlag<R, CreateImage>;

impl<R, F> ResourceFlag<R, F> {
    /// Returns true if the flag was given.
    pub(crate) const fn is_given(&self) -> bool {
        self.is_given
    }
}

impl<R: Resource, F: KindFlag> clap::Args for ResourceFlag<R, F> {
    fn augment_args(command: Command) -> Command {
        if !F::applies_to(R::KIND) {
            return command;
        }
        let flag = Arg::new(F::LONG_NAME)
            .long(F::LONG_NAME)
            .help(F::help(R::KIND))
            .action(ArgAction::SetTrue);
        command.arg(flag)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<R: Resource, F: KindFlag> clap::FromArgMatches for ResourceFlag<R, F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_given = F::applies_to(R::KIND) && matches.get_flag(F::LONG_NAME);
        Ok(Self { is_given, marker: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
