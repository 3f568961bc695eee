//! Cases on the Marker Responder (6.5).

use std::time::Duration;

use super::case::{Case, ONE};
use crate::pdu::{Kind, Marker, marker_response_violations};
use crate::record::ReceivedFrame;
use crate::session::Session;
use crate::verdict::{CaseResult, fail, require};

pub(crate) const CASES: &[Case] = &[
    Case::new(
        "marker.answered",
        "a Marker PDU is answered with a Marker Response that has its port, system and transaction",
        "6.5.1, 6.5.3.3, 6.5.4.2",
        answered,
    ),
    Case::new(
        "marker.responses-are-not-answered",
        "a Marker Response is not answered",
        "6.5.4.2",
        require_no_response,
    ),
];

const LOOK: Duration = Duration::from_millis(1500);

fn marker(session: &Session<'_>, transaction: u32) -> Marker {
    let partner = &session.links[ONE].partner;
    Marker {
        source: partner.source,
        is_response: false,
        requester_port: partner.info.port,
        requester_system: partner.info.system,
        transaction,
    }
}

fn markers<'a>(session: &'a Session<'_>) -> impl Iterator<Item = (&'a ReceivedFrame, &'a Marker)> {
    session.links[ONE].received_frames.iter().filter_map(|received| match &received.kind {
        Kind::Marker(marker) => Some((received, marker)),
        _ => None,
    })
}

fn answered(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    for transaction in [1, 0xfedc_ba98] {
        let marker = marker(session, transaction);
        session.send(ONE, &marker.encode())?;
        let count = markers(session).count();
        let limit = session.setup.immediate_limit();
        session.run_until(limit, |session| markers(session).count() > count)?;
        let Some((received, answer)) = markers(session).nth(count) else {
            return fail("a Marker Response within a second", "silence");
        };
        let expected = Marker { is_response: true, source: answer.source, ..marker };
        require(*answer == expected, format!("{expected:?}"), || format!("{answer:?}"))?;
        let violations = marker_response_violations(&received.frame);
        require(violations.is_empty(), "every octet as 6.5.3.3 has it", || violations.join("; "))?;
    }
    Ok("two transactions".to_owned())
}

fn require_no_response(session: &mut Session<'_>) -> CaseResult {
    session.establish()?;
    let response = Marker { is_response: true, ..marker(session, 77) };
    session.send(ONE, &response.encode())?;
    session.run_for(LOOK)?;
    let responses = markers(session).count();
    require(responses == 0, "silence", || format!("{responses} Marker PDUs"))?;
    Ok("silence".to_owned())
}
