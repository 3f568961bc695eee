//! Origin of a client, which determines its limits on connections and negotiations.

use core::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Origin of a client, which the client cannot forge. Clients of the same origin share limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// Client of a Unix socket: its user id on this host.
    User(u32),
    /// Client of a TCP socket: its IPv4 address, or the first address of its /64 network. A client
    /// may use all addresses of such a network (RFC 4291, section 2.5.4).
    Address(IpAddr),
}

impl Origin {
    pub(crate) fn from_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                Self::Address(Ipv6Addr::from(network).into())
            }
            address => Self::Address(address),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "user {user}"),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(network)) => write!(f, "{network}/64"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_64_bits_is_one_origin() {
        let parse = |text: &str| Origin::from_address(text.parse().unwrap());
        assert_eq!(parse("2001:db8::1"), parse("2001:db8::ffff:ffff:ffff:ffff"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_eq!(parse("::ffff:192.0.2.1"), Origin::Address(IpAddr::from([192, 0, 2, 1])));
        assert_eq!(parse("2001:db8::1").to_string(), "2001:db8::/64");
    }
}
