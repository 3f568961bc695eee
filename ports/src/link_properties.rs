//! Link state of a network device.

/// Speed and duplex, as reported by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSpeed {
    /// Speed in Mbit/s, more than 0; `None` if unknown, as for most devices without carrier.
    pub mbps: Option<u32>,
    /// True for full duplex, false for half duplex; `None` if unknown.
    pub full_duplex: Option<bool>,
}

/// Current link state of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkProperties {
    /// True if the device is up and has a carrier.
    pub is_up: bool,
    /// Speed and duplex of the link.
    pub speed: LinkSpeed,
}
