//! Light guests: a namespace whose NIC is a TAP port of the switch. To the
//! switch it is a guest with a real kernel's TCP stack.

use anyhow::Result;

use crate::daemon::Daemon;
use crate::namespace::Namespace;
use crate::rig::Rig;

/// A light guest.
#[derive(Debug)]
pub struct LightGuest {
    /// Where its programs run.
    pub namespace: Namespace,
    /// Name of its NIC, also in the host file.
    pub nic: String,
    number: u8,
}

impl LightGuest {
    /// The device in every light guest.
    pub const DEVICE: &'static str = "eth0";

    /// A guest whose addresses end with `number`.
    ///
    /// # Errors
    /// The host refused a namespace.
    pub fn new(rig: &Rig, nic: &str, number: u8) -> Result<Self> {
        Ok(Self { namespace: Namespace::new(rig, nic)?, nic: nic.to_owned(), number })
    }

    /// Its `[[nic]]` table; `keys` are more lines of it.
    pub fn nic_toml(&self, switch: &str, keys: &str) -> String {
        format!(
            "[[nic]]\nname = \"{}\"\nswitch = \"{switch}\"\nbackend = \"tap\"\n\
             device = \"{}\"\nnetns = \"{}\"\n{keys}\n",
            self.nic,
            Self::DEVICE,
            self.namespace.name()
        )
    }

    /// Waits for its device and gives it its addresses.
    ///
    /// # Errors
    /// The daemon did not make the device.
    pub fn bring_up(&self) -> Result<()> {
        self.namespace.wait_device(Self::DEVICE)?;
        self.namespace.address(Self::DEVICE, &format!("{}/24", self.address()))?;
        self.namespace.address(Self::DEVICE, &format!("{}/64", self.address_v6()))
    }

    /// Its IPv4 address.
    pub fn address(&self) -> String {
        format!("10.77.0.{}", self.number)
    }

    /// Its IPv6 address.
    pub fn address_v6(&self) -> String {
        format!("fd77::{}", self.number)
    }

    /// Its MAC address as the kernel has it.
    ///
    /// # Errors
    /// The device is gone.
    pub fn mac(&self) -> Result<String> {
        let path = format!("/sys/class/net/{}/address", Self::DEVICE);
        // A namespace entered by `ip netns` has its own /sys.
        Ok(self.namespace.run(&["cat", &path])?.trim().to_owned())
    }
}

/// A daemon with one private switch `lan` and a light guest for each of `names`,
/// all brought up; `keys` are more lines of each guest's `[[nic]]`.
///
/// # Errors
/// Something did not start.
pub fn private_lan(rig: &Rig, names: &[(&str, &str)]) -> Result<(Daemon, Vec<LightGuest>)> {
    let mut host = String::from("[[switch]]\nname = \"lan\"\nkind = \"private\"\n");
    let mut guests = Vec::new();
    for (number, (name, keys)) in (1u8..).zip(names) {
        let guest = LightGuest::new(rig, name, number)?;
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
