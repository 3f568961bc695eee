//! PCI addresses.

use core::fmt;
use core::str::FromStr;

/// Address of a PCI function: domain, bus, device and function, such as `0000:03:10.1` (PCI Local
/// Bus Specification 3.0, section 3.2.2.3; Linux notation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// Domain: number of the PCI hierarchy of the machine.
    pub domain: u32,
    /// Bus number within the domain.
    pub bus: u8,
    /// Device on the bus, 0 to 31.
    pub device: u8,
    /// Function of the device, 0 to 7.
    pub function: u8,
}

/// Error of parsing a PCI address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciAddressError;

impl fmt::Display for PciAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be a PCI address like 0000:03:10.1")
    }
}

impl core::error::Error for PciAddressError {}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

impl FromStr for PciAddress {
    type Err = PciAddressError;

    /// Parses exactly the format that [`Display`](fmt::Display) produces.
    fn from_str(text: &str) -> Result<Self, PciAddressError> {
        let mut parts = text.split([':', '.']);
        let mut number = || u32::from_str_radix(parts.next()?, 16).ok();
        let mut read = || {
            let (domain, bus, device, function) = (number()?, number()?, number()?, number()?);
            let bus = u8::try_from(bus).ok()?;
            let device = u8::try_from(device).ok().filter(|device| *device < 32)?;
            let function = u8::try_from(function).ok().filter(|function| *function < 8)?;
            Some(Self { domain, bus, device, function })
        };
        let address = read().ok_or(PciAddressError)?;
        // Addresses are compared as text, so only the canonical form is accepted.
        if address.to_string() == text { Ok(address) } else { Err(PciAddressError) }
    }
}

impl PciAddress {
    /// Returns device and function as one byte, as used by configuration space (devfn).
    pub const fn device_function(self) -> u8 {
        (self.device << 3) | self.function
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_address_has_one_text(
            domain in any::<u32>(), bus in any::<u8>(), device in 0_u8..32, function in 0_u8..8,
        ) {
            let address = PciAddress { domain, bus, device, function };
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn no_text_panics(text in "[0-9a-fx:. ]{0,14}") {
            if let Ok(address) = text.parse::<PciAddress>() {
                prop_assert_eq!(address.to_string(), text);
            }
        }
    }

    #[test]
    fn malformed_pci_addresses_are_rejected() {
        for text in [
            "",
            "eth0",
            "03:10.1",
            "0000:03:20.0",
            "0000:03:10.8",
            "0000:03:10.1 ",
            "0000:3:10.1",
            "0000:03:1A.1",
            "0000.03.10.1",
            "+000:03:10.1",
            "0000:03:10.1.1",
        ] {
            assert_eq!(text.parse::<PciAddress>(), Err(PciAddressError), "{text}");
        }
    }
}
