//! Input of the forwarding decision besides the frames.

use suimon_quantity::Time;

use crate::slot::PortSlot;
use crate::tables::{Port, Switch, Tables};

/// State common to all frames of a batch.
pub(crate) struct Batch<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) now: Time,
    pub(crate) tick: u32,
    pub(crate) ingress: PortSlot,
    pub(crate) port: &'a Port,
    pub(crate) switch: &'a Switch,
}
