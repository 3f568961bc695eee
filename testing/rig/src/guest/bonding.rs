//! Bonds of a guest's NICs (the kernel's `networking/bonding`).

use anyhow::{Context, Result};

use super::machine::Guest;
use crate::ovs::Lacp;

/// State of a guest's bond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondStatus {
    /// Number of links in the active aggregator.
    pub ports: usize,
    /// System id of the partner.
    pub partner: String,
    /// Aggregator of each link, in the order of NICs.
    pub aggregators: Vec<String>,
}

impl Guest {
    /// Bonds NICs `2 * number` and the next one with LACP (one LACPDU per second, flows by
    /// addresses and ports), and assigns an address. The module must be loaded first, see
    /// [`Guest::load`].
    ///
    /// # Errors
    /// The guest rejects a setting.
    pub fn bond(&mut self, number: usize, lacp: Lacp, address: &str) -> Result<()> {
        let active = if lacp == Lacp::Active { "on" } else { "off" };
        let name = name(number);
        let folder = format!("/sys/class/net/{name}/bonding");
        let links = [number * 2, number * 2 + 1];
        let mut lines = vec![
            format!("echo +{name} >/sys/class/net/bonding_masters"),
            format!("echo 802.3ad >{folder}/mode"),
            format!("echo 100 >{folder}/miimon"),
            format!("echo fast >{folder}/lacp_rate"),
            format!("echo layer3+4 >{folder}/xmit_hash_policy"),
            format!("ip link set {name} down"),
            format!("echo {active} >{folder}/lacp_active"),
        ];
        lines.extend(links.map(|link| format!("echo +eth{link} >{folder}/slaves")));
        lines.push(format!("ip addr add {address}/24 dev {name}"));
        lines.push(format!("ip link set {name} up"));
        self.run(&lines.join(" && ")).map(drop)
    }

    /// Returns the MAC address of a bond, which is also its system id.
    ///
    /// # Errors
    /// There is no such bond.
    pub fn bond_system(&mut self, number: usize) -> Result<String> {
        self.run(&format!("cat /sys/class/net/{}/address", name(number)))
    }

    /// Returns the state that the guest's kernel reports for a bond.
    ///
    /// # Errors
    /// There is no such bond.
    pub fn bond_status(&mut self, number: usize) -> Result<BondStatus> {
        let text = self.run(&format!("cat /proc/net/bonding/{}", name(number)))?;
        status(&text).with_context(|| text.clone())
    }
}

fn name(number: usize) -> String {
    format!("bond{number}")
}

/// Parses the state. The active aggregator precedes the links, each of which names its aggregator.
fn status(text: &str) -> Option<BondStatus> {
    let values = |key: &'static str| {
        text.lines().filter_map(move |line| line.trim().strip_prefix(key)).map(str::trim)
    };
    Some(BondStatus {
        ports: values("Number of ports:").next()?.parse().ok()?,
        partner: values("Partner Mac Address:").next()?.to_owned(),
        aggregators: values("Aggregator ID:").skip(1).map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_active_aggregator_and_those_of_the_links_are_told_apart() {
        let text = "802.3ad info\nLACP active: on\nActive Aggregator Info:\n\tAggregator ID: 2\n\
                    \tNumber of ports: 1\n\tActor Key: 9\n\tPartner Mac Address: 02:53:00:00:00:01\n\n\
                    Slave Interface: eth0\nAggregator ID: 1\nActor Churn State: none\n\n\
                    Slave Interface: eth1\nAggregator ID: 2\n";
        let expected = BondStatus {
            ports: 1,
            partner: "02:53:00:00:00:01".to_owned(),
            aggregators: vec!["1".to_owned(), "2".to_owned()],
        };
        assert_eq!(status(text), Some(expected));
        assert_eq!(status("Bonding Mode: load balancing (round-robin)\n"), None);
    }
}
