//! MAC addresses.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// 48-bit MAC address (IEEE 802-2014, section 8.2).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddr([u8; 6]);

impl MacAddr {
    /// Broadcast address `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Group address of slow protocols, which bridges do not forward (IEEE 802.3-2022, Table
    /// 57A-1).
    pub const SLOW_PROTOCOLS: Self = Self([0x01, 0x80, 0xc2, 0, 0, 0x02]);

    /// Creates an address from its octets in transmission order.
    pub const fn new(octets: [u8; 6]) -> Self {
        Self(octets)
    }

    /// Converts a number produced by [`MacAddr::to_u64`] to an address; the upper 16 bits are
    /// ignored.
    pub const fn from_u64(number: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        Self([a, b, c, d, e, f])
    }

    /// Returns the octets in transmission order.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Returns true if the group bit is set, including the broadcast address.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns true for the broadcast address.
    pub const fn is_broadcast(self) -> bool {
        self.to_u64() == 0xffff_ffff_ffff
    }

    /// Returns true if the address can belong to a single station: neither a group nor all zero.
    pub const fn is_station(self) -> bool {
        !self.is_multicast() && self.to_u64() != 0
    }

    /// Returns the address as a number, first octet most significant, for use as a key.
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

/// Error of parsing a MAC address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a MAC address; write six pairs of hex digits, like 52:54:00:12:34:56")]
pub struct MacAddrError {
    text: String,
}

impl FromStr for MacAddr {
    type Err = MacAddrError;

    /// Parses `52:54:00:12:34:56` and Hyper-V's format `52-54-00-12-34-56`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || MacAddrError { text: text.chars().take(64).collect() };
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut octets = [0; 6];
        let mut parts = text.split(separator);
        for octet in &mut octets {
            let part = parts.next().ok_or_else(error)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(error());
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        if parts.next().is_some() { Err(error()) } else { Ok(Self(octets)) }
    }
}

impl TryFrom<String> for MacAddr {
    type Error = MacAddrError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<MacAddr> for String {
    fn from(mac: MacAddr) -> Self {
        mac.to_string()
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_parses_both_formats_and_displays_one() {
        let mac = MacAddr::new([0x52, 0x54, 0, 0x12, 0x34, 0xab]);
        assert_eq!("52:54:00:12:34:AB".parse(), Ok(mac));
        assert_eq!("52-54-00-12-34-ab".parse(), Ok(mac));
        assert_eq!(mac.to_string(), "52:54:00:12:34:ab");
        assert_eq!(mac.to_u64(), 0x5254_0012_34ab);
        assert_eq!(MacAddr::from_u64(0xffff_5254_0012_34ab), mac);
    }

    #[test]
    fn invalid_mac_text_is_rejected() {
        for text in [
            "",
            "52:54:00:12:34",
            "52:54:00:12:34:56:78",
            "52:54:00:12:34:5",
            "52:54:00:12:34:+5",
            "52:54-00:12:34:56",
            "52:54:00:12:34:5g",
            "5254.0012.3456",
            "é2:54:00:12:34:56",
        ] {
            let error = text.parse::<MacAddr>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{text}` is not a MAC")), "{error}");
        }
        let text = "x".repeat(1000).parse::<MacAddr>().unwrap_err();
        assert!(text.to_string().len() < 200);
    }

    #[test]
    fn group_and_station_addresses_are_distinguished() {
        assert!(MacAddr::BROADCAST.is_broadcast() && MacAddr::BROADCAST.is_multicast());
        let group = MacAddr::new([1, 0, 0x5e, 0, 0, 1]);
        assert!(group.is_multicast() && !group.is_broadcast() && !group.is_station());
        assert!(MacAddr::new([2, 0, 0, 0, 0, 1]).is_station());
        assert!(!MacAddr::default().is_station());
    }
}
