//! Probe of a host behind the team with an ARP request (RFC 826), which every IPv4 host answers.

use std::net::Ipv4Addr;

use crate::pdu::{Mac, read, read_u16};

const ARP_TYPE: u16 = 0x0806;
const FRAME_BYTES: usize = 60;

/// Target and sender of the probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// Address of a host behind the team.
    pub(crate) target: Ipv4Addr,
    /// Sender address of the request, in the target's network and not used by another host.
    pub(crate) sender: Ipv4Addr,
}

/// A received ARP reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeReply {
    /// Destination address of the reply, which is the source address of the request.
    pub(crate) source: Mac,
}

impl Probe {
    /// Returns an ARP request with the source address `source`.
    pub(crate) fn request(&self, source: Mac) -> Vec<u8> {
        let mut frame = vec![0xff; 6];
        frame.extend(source);
        frame.extend(ARP_TYPE.to_be_bytes());
        frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend(source);
        frame.extend(self.sender.octets());
        frame.extend([0; 6]);
        frame.extend(self.target.octets());
        frame.resize(FRAME_BYTES, 0);
        frame
    }

    /// Returns the reply if the frame is an ARP reply of the target to the sender.
    pub(crate) fn decode_reply(&self, frame: &[u8]) -> Option<ProbeReply> {
        let is_reply = read_u16(frame, 12) == Some(ARP_TYPE) && read_u16(frame, 20) == Some(2);
        let from: [u8; 4] = read(frame, 28)?;
        let to: [u8; 4] = read(frame, 38)?;
        (is_reply && from == self.target.octets() && to == self.sender.octets())
            .then(|| read(frame, 0).map(|source| ProbeReply { source }))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_distinguished_from_a_request_and_from_replies_to_others() {
        let probe = Probe { target: [10, 0, 0, 1].into(), sender: [10, 0, 0, 9].into() };
        let source = [2, 0, 0, 0, 0, 9];
        let request = probe.request(source);
        assert_eq!((request.len(), probe.decode_reply(&request)), (60, None));
        // A reply as specified by RFC 826: sender and target exchanged, operation 2.
        let mut answer = request.clone();
        answer[..6].copy_from_slice(&source);
        answer[21] = 2;
        answer[28..32].copy_from_slice(&[10, 0, 0, 1]);
        answer[38..42].copy_from_slice(&[10, 0, 0, 9]);
        assert_eq!(probe.decode_reply(&answer), Some(ProbeReply { source }));
        answer[31] = 2;
        assert_eq!(probe.decode_reply(&answer), None);
        assert_eq!(probe.decode_reply(&answer[..30]), None);
    }
}
