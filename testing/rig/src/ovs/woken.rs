//! Without DPDK: the daemon sleeps until one of its TAPs has a frame ("interrupt
//! mode"), as a processor of ours does.

use anyhow::Result;

use super::server::Server;
use crate::light_guest::LightGuest;
use crate::namespace::Namespace;
use crate::rig::Rig;

/// A switch whose ports are TAPs in namespaces.
#[derive(Debug)]
pub struct OvsWoken(Server);

impl OvsWoken {
    /// Starts it without a port.
    ///
    /// # Errors
    /// It does not start; with the end of its log.
    pub fn start(rig: &Rig) -> Result<Self> {
        Server::start(rig, &[]).map(Self)
    }

    /// Gives a namespace a port: the device that light guests have.
    ///
    /// # Errors
    /// The switch did not make the device, or it stopped.
    pub fn connect(&mut self, guest: &Namespace, name: &str) -> Result<()> {
        let Self(server) = self;
        server.add_port(name, &["type=internal"])?;
        server.namespace.wait_device(name)?;
        let to = ["netns", guest.name(), "name", LightGuest::DEVICE];
        server.namespace.run(&[&["ip", "link", "set", name], &to[..]].concat())?;
        server.switch.check_running()
    }
}
