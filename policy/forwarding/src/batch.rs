//! Context of the forwarding decision that all frames of a batch share.

use suimon_quantity::Time;

use crate::slot::PortSlot;
use crate::tables::{Port, Switch, Tables};

/// Tables, time and ingress port of all frames of a batch.
pub(crate) struct Batch<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) now: Time,
    pub(crate) tick: u32,
    pub(crate) ingress: PortSlot,
    pub(crate) port: &'a Port,
    pub(crate) switch: &'a Switch,
}
