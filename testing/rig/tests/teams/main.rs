//! Teams, LACP, tested with third-party components. One module per subject.

mod bonding;
#[path = "../support/bridged.rs"]
mod bridged;
mod changes;
mod control_sockets;
mod flapping;
mod flood;
mod lacp_conformance;
#[allow(unreachable_pub, dead_code, reason = "a module of several test binaries")]
#[path = "../support/packet_tap.rs"]
mod packet_tap;
#[allow(unreachable_pub, dead_code, reason = "a module of several test binaries")]
#[path = "../support/streams.rs"]
mod streams;
mod switch_peer;
#[path = "../support/team_of_two.rs"]
mod team_of_two;
#[path = "../support/teamed.rs"]
mod teamed;
