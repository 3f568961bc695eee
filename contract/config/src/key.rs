//! Key of a table in the host file.

use crate::Form;

/// Effect of changing a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeEffect {
    /// The change applies without interrupting traffic.
    Live,
    /// As `Live` on a TAP or legacy NIC. A vhost-user VM reads the value only when it connects, so
    /// the port is replaced and the VM reconnects.
    LiveOnTap,
    /// The resource is replaced: its traffic is interrupted.
    Replace,
    /// A running VM is unchanged; the value applies at its next start.
    NextVmStart,
    /// The daemon reads the value when it starts.
    NextDaemonStart,
    /// The value identifies the resource: a different value denotes a different resource.
    Identity,
    /// The value is fixed while the host is a node of the cluster.
    AfterLeavingCluster,
}

/// Key of a table in the host file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Name of the key in the file.
    pub name: &'static str,
    /// Form of the key's values.
    pub form: Form,
    /// True if the key is required.
    pub required: bool,
    /// True if an absent key has a default value ([`key_default`](crate::key_default)). For other
    /// optional keys, absence or null has a meaning of its own.
    pub has_default: bool,
    /// Effect of changing its value.
    pub effect: ChangeEffect,
}

impl Key {
    /// Returns true if null is permitted, which is equivalent to an absent key.
    pub const fn permits_null(&self) -> bool {
        !self.required && !self.has_default
    }
}

pub(crate) const fn required(name: &'static str, form: Form, effect: ChangeEffect) -> Key {
    Key { name, form, required: true, has_default: false, effect }
}

pub(crate) const fn optional(name: &'static str, form: Form, effect: ChangeEffect) -> Key {
    Key { name, form, required: false, has_default: false, effect }
}

/// Returns an optional key with a default value.
pub(crate) const fn optional_with_default(
    name: &'static str,
    form: Form,
    effect: ChangeEffect,
) -> Key {
    Key { name, form, required: false, has_default: true, effect }
}

pub(crate) const QUEUE_COUNT: Form = Form::Number { min: 1, max: 64 };
