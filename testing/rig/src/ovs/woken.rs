//! Open vSwitch without DPDK: the daemon sleeps until a TAP device has a frame ("interrupt mode"),
//! as Suimon's workers do.

use anyhow::Result;

use super::server::Server;
use crate::light_guest::NamespaceGuest;
use crate::namespace::Namespace;
use crate::rig::Rig;

/// Switch whose ports are TAP devices in namespaces.
#[derive(Debug)]
pub struct OvsWoken(Server);

impl OvsWoken {
    /// Starts the switch without a port.
    ///
    /// # Errors
    /// The switch does not start, with the end of its log.
    pub fn start(rig: &Rig) -> Result<Self> {
        Server::start(rig, &[]).map(Self)
    }

    /// Connects a namespace to a port, with the device name of namespace guests.
    ///
    /// # Errors
    /// The switch did not create the device, or has stopped.
    pub fn connect(&mut self, guest: &Namespace, name: &str) -> Result<()> {
        self.connect_with(guest, name, &[])
    }

    /// Connects a namespace to a port with these columns of the table `Port`, such as `tag=30`.
    ///
    /// # Errors
    /// The switch rejected a setting, did not create the device, or has stopped.
    pub fn connect_with(&mut self, guest: &Namespace, name: &str, port: &[&str]) -> Result<()> {
        let Self(server) = self;
        server.add_port(name, &["type=internal"])?;
        if !port.is_empty() {
            server.set(&[&["set", "port", name], port].concat())?;
        }
        server.namespace.wait_device(name)?;
        let target = ["netns", guest.name(), "name", NamespaceGuest::DEVICE];
        server.namespace.run(&[&["ip", "link", "set", name], &target[..]].concat())?;
        server.switch.check_running()
    }
}
