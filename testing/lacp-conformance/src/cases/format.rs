//! Cases on the format of the device's LACPDUs.

use std::time::Duration;

use super::case::Case;
use crate::pdu::{Kind, Lacpdu, lacpdu_violations, mac_text};
use crate::session::Session;
use crate::verdict::{CaseResult, require};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "format.lacpdu",
        "LACPDUs have the address, type, subtype, TLVs and lengths of the standard, and zeros \
         where it reserves",
        "6.4.2.2, 6.4.2.3; IEEE 802.3 Annex 57A",
        octets,
    ),
    Case::new(
        "format.identity",
        "the device is the same individual system on every link and in every LACPDU, with a port \
         number of its own on each",
        "6.3.2, 6.3.4",
        identity,
    ),
];

const LOOK: Duration = Duration::from_secs(3);

fn octets(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    session.run_for(LOOK)?;
    let mut inspected = 0;
    for link in &session.links {
        for received in
            link.received_frames.iter().filter(|received| matches!(received.kind, Kind::Lacp(_)))
        {
            let violations = lacpdu_violations(&received.frame);
            require(violations.is_empty(), "every octet as 6.4.2.3 has it", || {
                violations.join("; ")
            })?;
            inspected += 1;
        }
    }
    Ok(format!("{inspected} LACPDUs"))
}

fn identity(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    session.run_for(LOOK)?;
    let mut ports = Vec::new();
    let mut system = None;
    for link in &session.links {
        let pdus: Vec<Lacpdu> =
            link.lacpdus_since(Duration::ZERO).into_iter().map(|(_, pdu)| pdu).collect();
        let Some(first) = pdus.first().map(|pdu| pdu.actor) else { continue };
        let changed = pdus.iter().find(|pdu| !pdu.actor.is_same_port(&first));
        require(changed.is_none(), "one identity in all LACPDUs of a link", || {
            changed.map(super::case::describe).unwrap_or_default()
        })?;
        require(
            first.system != [0; 6] && first.system[0] & 1 == 0,
            "an individual system",
            || mac_text(first.system),
        )?;
        let first_system = *system.get_or_insert((first.system_priority, first.system));
        require(
            first_system == (first.system_priority, first.system),
            "one system on all links",
            || format!("{} and {}", mac_text(first_system.1), mac_text(first.system)),
        )?;
        require(!ports.contains(&first.port), "a port number for each link", || {
            format!("{} twice", first.port)
        })?;
        ports.push(first.port);
    }
    Ok(format!("ports {ports:?}"))
}
