//! Namespace guests: a namespace whose NIC is a TAP port of the switch. For the switch, it is a
//! guest with a real kernel's TCP stack.

use anyhow::Result;

use crate::daemon::Daemon;
use crate::namespace::Namespace;
use crate::rig::Rig;

/// Guest that is a network namespace instead of a VM.
#[derive(Debug)]
pub struct NamespaceGuest {
    /// Namespace in which the programs of the guest run.
    pub namespace: Namespace,
    /// Name of its NIC, also in the host file.
    pub nic: String,
    number: u8,
}

impl NamespaceGuest {
    /// Name of the device in every namespace guest.
    pub const DEVICE: &'static str = "eth0";

    /// Creates a guest whose addresses end with `number`.
    ///
    /// # Errors
    /// The host rejected the namespace.
    pub fn new(rig: &Rig, nic: &str, number: u8) -> Result<Self> {
        Ok(Self { namespace: Namespace::new(rig, nic)?, nic: nic.to_owned(), number })
    }

    /// Returns its `[[nic]]` table; `keys` contains further lines of it.
    pub fn nic_toml(&self, switch: &str, keys: &str) -> String {
        format!(
            "[[nic]]\nname = \"{}\"\nswitch = \"{switch}\"\nbackend = \"tap\"\n\
             device = \"{}\"\nnetns = \"{}\"\n{keys}\n",
            self.nic,
            Self::DEVICE,
            self.namespace.name()
        )
    }

    /// Waits for its device and assigns its addresses.
    ///
    /// # Errors
    /// The daemon did not create the device.
    pub fn bring_up(&self) -> Result<()> {
        self.namespace.wait_device(Self::DEVICE)?;
        self.namespace.address(Self::DEVICE, &format!("{}/24", self.address()))?;
        self.namespace.address(Self::DEVICE, &format!("{}/64", self.address_v6()))
    }

    /// Returns its IPv4 address.
    pub fn address(&self) -> String {
        format!("10.77.0.{}", self.number)
    }

    /// Returns its IPv6 address.
    pub fn address_v6(&self) -> String {
        format!("fd77::{}", self.number)
    }

    /// Returns its MAC address, as the kernel reports it.
    ///
    /// # Errors
    /// The device no longer exists.
    pub fn mac(&self) -> Result<String> {
        let path = format!("/sys/class/net/{}/address", Self::DEVICE);
        // A namespace entered by `ip netns` has a separate /sys.
        Ok(self.namespace.run(&["cat", &path])?.trim().to_owned())
    }
}

/// Starts a daemon with one private switch `lan` and a namespace guest for each of `names`, all set
/// up; the second string contains further lines of the guest's `[[nic]]`.
///
/// # Errors
/// A component did not start.
pub fn private_lan(rig: &Rig, names: &[(&str, &str)]) -> Result<(Daemon, Vec<NamespaceGuest>)> {
    let mut host = String::from("[[switch]]\nname = \"lan\"\nkind = \"private\"\n");
    let mut guests = Vec::new();
    for (number, (name, keys)) in (1u8..).zip(names) {
        let guest = NamespaceGuest::new(rig, name, number)?;
        host.push_str(&guest.nic_toml("lan", keys));
        guests.push(guest);
    }
    let daemon = Daemon::start(rig, &host)?;
    for guest in &guests {
        daemon.wait_up("nic", &guest.nic)?;
        guest.bring_up()?;
    }
    Ok((daemon, guests))
}
