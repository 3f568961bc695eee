//! What others tell the teams' thread.

use std::collections::BTreeMap;

use suimon_ports::{ControlSocket, DeviceError, LinkFacts};
use suimon_quantity::PortId;

/// What has not been read yet.
#[derive(Default)]
pub(crate) struct Inbox {
    /// By device, of which there are few: nobody can make this grow.
    pub(crate) links: BTreeMap<PortId, ToldLink>,
    /// The answers to what was asked of the worker, one for each question.
    pub(crate) sockets: Vec<OpenedSocket>,
    /// The thread is to end.
    pub(crate) stop: bool,
}

/// What a device said of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToldLink {
    /// Which opening of the device said so.
    pub(crate) generation: u64,
    /// It was down meanwhile, whatever it is now.
    pub(crate) was_down: bool,
    pub(crate) link: LinkFacts,
}

/// A control socket, or why there is none.
pub(crate) struct OpenedSocket {
    pub(crate) port: PortId,
    pub(crate) generation: u64,
    pub(crate) result: Result<Box<dyn ControlSocket>, DeviceError>,
}

impl Inbox {
    pub(crate) fn hear_link(&mut self, port: PortId, generation: u64, link: LinkFacts) {
        let before = self.links.get(&port).filter(|told| told.generation == generation);
        let was_down = !link.up || before.is_some_and(|told| told.was_down);
        self.links.insert(port, ToldLink { generation, was_down, link });
    }
}
