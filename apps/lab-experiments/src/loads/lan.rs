//! Namespace guests on a switch of a daemon, and an external network behind its uplink.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result};
use suimon_rig::{Daemon, Namespace, NamespaceGuest, Rig, Veth, wait_until};

/// Address in the external network.
pub(crate) const EXTERNAL_ADDRESS: &str = "10.77.0.200";
/// Name of the virtual switch that the VMs are connected to.
pub(crate) const SWITCH: &str = "lan";
/// Name of the uplink, if the switch has one.
pub(crate) const UPLINK: &str = "up";
/// Last octet of the first guest's address.
const FIRST: u8 = 10;
/// Time limit for guests to reach each other and the external network.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// Parameters of the network of VMs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LanSpec<'a> {
    /// Number of guests, 1 to 100.
    pub(crate) guests: u8,
    /// Number of unpinned workers.
    pub(crate) workers: u16,
    /// Additional lines of the table `[[uplink]]` in the host file; the switch is private if
    /// absent.
    pub(crate) uplink: Option<&'a str>,
}

/// Daemon with guests that reach each other, and the external network if there is an uplink. Fields
/// are dropped in order.
#[derive(Debug)]
pub(crate) struct Lan {
    pub(crate) daemon: Daemon,
    pub(crate) guests: Vec<NamespaceGuest>,
    world: Option<World>,
}

#[derive(Debug)]
struct World {
    namespace: Namespace,
    /// Network device in the external network that is connected to the uplink.
    device: String,
    _wire: Veth,
}

impl Lan {
    /// Creates the setup and waits until all endpoints reach each other.
    pub(crate) fn set_up(rig: &Rig, spec: LanSpec<'_>) -> Result<Self> {
        let mut host = format!("[host]\nfloating_workers = {}\n", spec.workers);
        let world = match spec.uplink {
            None => {
                let _ = write!(host, "[[switch]]\nname = \"{SWITCH}\"\nkind = \"private\"\n");
                None
            }
            Some(keys) => {
                let (world, near) = World::new(rig)?;
                let _ = write!(
                    host,
                    "[[switch]]\nname = \"{SWITCH}\"\nkind = \"external\"\nuplink = \"{UPLINK}\"\n\
                     [[uplink]]\nname = \"{UPLINK}\"\ndevice = \"{near}\"\n{keys}\n"
                );
                Some(world)
            }
        };
        let guests: Vec<NamespaceGuest> = (0..spec.guests)
            .map(|number| NamespaceGuest::new(rig, &format!("vm{number}"), FIRST + number))
            .collect::<Result<_>>()?;
        for guest in &guests {
            host += &guest.nic_toml(SWITCH, "");
        }
        let daemon = Daemon::start(rig, &host)?;
        for guest in &guests {
            guest.bring_up()?;
        }
        let lan = Self { daemon, guests, world };
        lan.wait_reached()?;
        Ok(lan)
    }

    /// Returns the namespace of the external network.
    ///
    /// # Errors
    /// The switch is private.
    pub(crate) fn external_namespace(&self) -> Result<&Namespace> {
        let world = self.world.as_ref().context("a private switch has no outside endpoint")?;
        Ok(&world.namespace)
    }

    /// Returns the device behind the uplink, in the external network.
    ///
    /// # Errors
    /// The switch is private.
    pub(crate) fn external_device(&self) -> Result<&str> {
        Ok(&self.world.as_ref().context("a private switch has no outside endpoint")?.device)
    }

    fn wait_reached(&self) -> Result<()> {
        let first = self.guests.first().context("the guests are missing")?.address();
        let far = if self.world.is_some() { EXTERNAL_ADDRESS } else { &first };
        wait_until("guests that reach each other", READY_LIMIT, || {
            Ok(self.guests.iter().all(|guest| guest.namespace.ping(far).unwrap_or(false)))
        })
    }
}

impl World {
    /// Creates the external network. Also returns the device on the host for the uplink.
    fn new(rig: &Rig) -> Result<(Self, String)> {
        let namespace = Namespace::new(rig, "world")?;
        let (near, device) = (rig.device("n"), rig.device("f"));
        let wire = Veth::new(&near, &device, &namespace)?;
        namespace.address(&device, &format!("{EXTERNAL_ADDRESS}/24"))?;
        Ok((Self { namespace, device, _wire: wire }, near))
    }
}
